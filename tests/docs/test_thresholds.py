"""A threshold is a constant, and texts say its value: pages bind the numbers that they state to the constant,
``5 %<!-- runs.LEVEL -->``; sentences in the code format it; --help, which may not import it, is compared.
"""

import ast
import re
from functools import reduce
from pathlib import Path

import click
import pytest
from tracediff_cli.group import cli

import tracediff
from tracediff.diff import preflight, results, verdict
from tracediff.diff.gate import config, figures, judge, limits, sample_size, waivers
from tracediff.diff.statistics import many, runs
from tracediff.explain import amounts, cautions, effects, facts, lines, singles
from tracediff.history import change_points, explain

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DECIDING = (preflight, cautions, verdict, many, runs, config, figures, judge, limits, sample_size, waivers)
"""Modules whose every number a page states, or `UNSTATED` gives the reason."""
MODULES = {module.__name__.rpartition(".")[2]: module for module in DECIDING} | {
    "amounts": amounts,
    "change_points": change_points,
    "effects": effects,
    "explain": explain,
    "facts": facts,
    "lines": lines,
    "results": results,
    "singles": singles,
}
UNSTATED = {
    "preflight.LONGEST_VALUES": "characters of a line",
    "figures.LONGEST": "characters of an error",
    "cautions.USUALLY": "the page says: nearly all steps",
    "verdict.SAME_SENTENCE": "the sentence states it",
    "verdict.TOO_NOISY": "the sentence states it",
    "runs.BATCHES": "within one run, which no verdict rests on",
    "sample_size.MOST_RUNS": "the sentence states it",
}
WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10}
DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
UNITS = {"%": 0.01, "µs": 1.0, "us": 1.0, "": 1.0}
BOUND = re.compile(
    r"(?P<number>\d[\d.,]*(?:⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|\b[a-z]+) ?(?P<unit>%|µs|us|)"
    r"<!-- (?:(?P<minuend>\d) - )?(?P<name>\w+(?:\.\w+)+)(?: - (?P<less>\d))?(?: in (?P<of>%))? -->"
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


def value_of(name):
    module, *path = name.split(".")
    return reduce(lambda at, key: at[key] if isinstance(at, dict) else getattr(at, key), path, MODULES[module])


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
        value = value_of(found["name"]) - int(found["less"] or 0)
        value = int(found["minuend"]) - value if found["minuend"] else value
        if stated(found["number"]) * UNITS[found["unit"] or found["of"] or ""] != pytest.approx(value):
            wrong.append(f"{page.relative_to(ROOT)}: {found[0]} is {value:g}")
    assert wrong == []
    comments = sum(len(re.findall(r"<!-- (?:\d - )?\w+\.\w", page.read_text())) for page in DOCS.rglob("*.md"))
    assert len(bindings()) == comments > 40, "a comment that binds no number"


def numbers_of(module):
    """The names of the numbers that a module assigns."""
    for node in ast.parse(Path(module.__file__).read_text()).body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            for name in target.elts if isinstance(target, ast.Tuple) else (target,):
                if isinstance(getattr(module, name.id), int | float):
                    yield f"{module.__name__.rpartition('.')[2]}.{name.id}"


def test_every_threshold_is_stated():
    names = {name for module in DECIDING for name in numbers_of(module)}
    in_pages = {found["name"] for _, found in bindings()}
    assert names - in_pages == UNSTATED.keys()
    assert runs.LEVEL == 0.05, "ci95_us and other public names state it"


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
        ("check", "--max-regression", f"[default: {100 * config.DEFAULT_RELATIVE:g}%]"),
        ("check", "--min-delta", f"[default: {config.DEFAULT_ABSOLUTE:g}us]"),
        ("compare", "--paired", f"needs {runs.ENOUGH_RUNS} pairs or more"),
    ],
)
def test_help_states_the_values_of_the_constants(command, option, text):
    (found,) = (p for p in cli.get_command(click.Context(cli), command).params if option in p.opts)
    assert text in found.help


def test_functions_have_the_defaults_of_the_limits():
    usual = tracediff.check.__kwdefaults__
    limit = limits.Limit("step", config.DEFAULT_RELATIVE, config.DEFAULT_ABSOLUTE)
    given = limits.parse_relative(usual["max_regression"], ""), limits.parse_absolute(usual["min_delta"], "us", "")
    assert given == (limit.relative, limit.absolute)
