"""A number that decides is in the register, and texts say its value: pages bind the numbers that they state to it,
``5 %<!-- SIGNIFICANCE -->``; sentences in the code, and --help, format it.
"""

import ast
import inspect
import re
from pathlib import Path

import click
import pytest
from tracediff_cli.group import cli

import tracediff
from tracediff import thresholds
from tracediff.diff import preflight, verdict
from tracediff.diff.gate import figures, judge, limits
from tracediff.diff.statistics import many, runs
from tracediff.explain import compare

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TABLE = thresholds.decides.table(thresholds)
DECIDING = (preflight, compare, verdict, many, runs, figures, judge, limits)
"""Modules whose sentences state numbers."""
WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10}
DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
UNITS = {"%": 0.01, "µs": 1.0, "us": 1.0, "": 1.0}
BOUND = re.compile(
    r"(?P<number>\d[\d.,]*(?:⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|\b[a-z]+) ?(?P<unit>%|µs|us|)"
    r"<!-- (?:(?P<minuend>\d) - )?(?P<name>[A-Z]\w+)(?: - (?P<less>\d))?(?: in (?P<of>%))? -->"
)
QUANTITY = re.compile(r"\b\d[\d.,]* ?(?:%|µs|ms|times\b)(?!<!--)")
COMMENT = "<!--"
SECTIONS = {
    "preflight.md": ["", "What is different work, and what is a slow-down"],
    "statistics.md": ["Runs are the unit", "The words"],
    "ci.md": ["Limits", "What makes a check not comparable"],
}
"""Page → sections in which every quantity is bound; the other quantities were measured, or are examples."""
EXAMPLES = ("allows a growth of 20 µs",)
NUMBERS_IN_WORDS = re.compile(rf"\d|\b(?:{'|'.join(WORDS)}|twice|half)\b")
STATED_IN_CODE = (
    "fewer than half of the steps",  # a median
    "95 % interval",  # which the names of keys (ci95_us) state as well
    "set a limit above 0",
    "write ",  # examples of what may be given
    "50us or 1ms",
)


def stated(text):
    """The number that a page writes as ``2,000``, ``10⁻⁶`` or ``three``."""
    if text in WORDS:
        return WORDS[text]
    base, minus, power = text.rstrip(",").replace(",", "").partition("⁻")
    return float(base) ** -int(power.translate(DIGITS)) if minus else float(base)


def bindings():
    return [(page, found) for page in sorted(DOCS.rglob("*.md")) for found in BOUND.finditer(page.read_text())]


def test_pages_state_the_values_of_the_constants():
    wrong = []
    for page, found in bindings():
        value = TABLE[found["name"]].value - int(found["less"] or 0)
        value = int(found["minuend"]) - value if found["minuend"] else value
        if stated(found["number"]) * UNITS[found["unit"] or found["of"] or ""] != pytest.approx(value):
            wrong.append(f"{page.relative_to(ROOT)}: {found[0]} is {value:g}")
    assert wrong == []
    comments = sum(len(re.findall(r"<!-- (?:\d - )?[A-Z]\w+ ", page.read_text())) for page in DOCS.rglob("*.md"))
    assert len(bindings()) == comments > 40, "a comment that binds no number"


@pytest.mark.parametrize("folder", ["analysis", "diff", "explain", "history"])
def test_no_module_has_a_number_of_its_own(folder):
    """Those that decide are in the register, which the documentation lists; the others are bounds."""
    for path in (ROOT / "tracediff" / folder).rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            values = node.value.elts if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) else [node]
            for value in values:
                number = value.value if isinstance(value, ast.Assign | ast.AnnAssign) else value
                assert not (isinstance(number, ast.Constant) and isinstance(number.value, int | float)), path
    assert thresholds.SIGNIFICANCE == 0.05, "ci95_us and other public names state it"


@pytest.mark.parametrize("page", SECTIONS)
def test_every_quantity_of_these_sections_is_bound(page):
    titles = re.split(r"^#+ (.*)$", (DOCS / page).read_text(), flags=re.MULTILINE)
    sections = {"": titles[2], **dict(zip(titles[1::2], titles[2::2], strict=True))}
    for title in SECTIONS[page]:
        prose = re.sub(r"```.*?```|`[^`]*`", "", sections[title], flags=re.DOTALL)
        for example in EXAMPLES:
            prose = prose.replace(example, "")
        assert QUANTITY.findall(prose) == [], title


@pytest.mark.parametrize("module", DECIDING, ids=lambda module: module.__name__.rpartition(".")[2])
def test_sentences_in_the_code_format_their_numbers(module):
    tree = ast.parse(Path(module.__file__).read_text())
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in docstrings}
    sentences = [text for text in texts if isinstance(text, str) and " " in text.strip() and "\\d" not in text]
    unbound = [text for text in sentences if NUMBERS_IN_WORDS.search(text)]
    assert [text for text in unbound if not any(known in text for known in STATED_IN_CODE)] == []


@pytest.mark.parametrize(
    ("command", "option", "text"),
    [
        ("check", "--max-regression", f"[default: {100 * thresholds.MAX_REGRESSION:g}%,0us]"),
        ("compare", "--paired", f"needs {thresholds.RANKED_RUNS} pairs or more"),
    ],
)
def test_help_states_the_values_of_the_constants(command, option, text):
    (found,) = (p for p in cli.get_command(click.Context(cli), command).params if option in p.opts)
    assert text in found.help


def test_functions_have_the_defaults_of_the_limits():
    usual = {name: p.default for name, p in inspect.signature(tracediff.check).parameters.items()}
    limit = limits.Limit("step", thresholds.MAX_REGRESSION, 0.0)
    given = limits.parse_relative(usual["max_regression"], ""), limits.parse_absolute(usual["min_delta"], "us", "")
    assert given == (limit.relative, limit.absolute)
