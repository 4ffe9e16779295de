"""The documentation: what exists in the code is documented, what is documented, cited and linked exists."""

import ast
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest
from json_schema import DOCUMENTS, json_schema
from tracediff_cli.compare import VIEWS
from tracediff_cli.group import COMMANDS, cli
from tracediff_dashboards.pages import PAGES

import tracediff
from tracediff import charts
from tracediff.collect.options import parser
from tracediff.collect.workloads import NAMES as WORKLOADS
from tracediff.diff import preflight
from tracediff.diff.gate.limits import STOPPING
from tracediff.diff.matching.items import LEVELS
from tracediff.explain import compare, facts, reasons
from tracediff.profile.events.step_states import STATES
from tracediff.profile.kernels.families import OTHER, RULES
from tracediff.profile.tables import NAMES as TABLES, table_names
from tracediff.profile.tables.schema import OVER_RANKS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "tracediff"
PAGES_OF_USERS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
ALL_PAGES = [
    *PAGES_OF_USERS,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "benchmarks").rglob("README.md")),
    ROOT / "sample_traces" / "README.md",
    *sorted((ROOT / ".github").rglob("*.md")),
]
SOURCES = [
    path
    for folder in ("tracediff", "cli", "dashboards", "tests", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".js", ".css", ".sh") and not path.name.endswith(".min.js")
] + [ROOT / "Makefile", ROOT / "pyproject.toml"]
JSON_PAGES = {
    "tracediff.diff/1": ("reference/json.md",),
    "tracediff.profile/1": ("analysis.md", "reference/json.md"),
    "tracediff.check/1": ("reference/check.md", "reference/json.md"),
    "tracediff.matrix/1": ("reference/matrix.md", "reference/json.md"),
    "tracediff.table/1": ("reference/table.md",),
    "tracediff.memory/1": ("reference/memory.md",),
    "tracediff.history/1": ("reference/history.md",),
}
"""Schema → the page of its keys, then the page of the types that it shares with the comparison."""


@cache
def documentation():
    return "\n".join(page.read_text() for page in PAGES_OF_USERS)


def prose(text):
    """Markdown without fenced blocks."""
    return re.sub(r"^( *)(```|~~~).*?^\1\2", "", text, flags=re.MULTILINE | re.DOTALL)


def first_cells(page):
    """The texts in the first column of a page's tables, one text per name."""
    rows = [line.split("|")[1] for line in (DOCS / page).read_text().splitlines() if line.startswith("| ")]
    return {re.sub(r"^\[(.*)\]\(.*\)$", r"\1", name.strip()).strip("`*") for row in rows for name in row.split(",")}


def first_arguments(path):
    """What is called in a module → the texts that are the first argument of these calls."""
    tree = ast.parse(path.read_text())
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            argument = node.args[0]
            argument = constants.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
            if isinstance(argument, ast.Constant):
                found.setdefault(ast.unparse(node.func).removeprefix("self."), set()).add(argument.value)
    return found


def test_preflight_codes():
    codes = set()
    for path in (SOURCE / "diff/preflight.py", SOURCE / "explain/compare.py"):
        codes |= first_arguments(path)["Reason"]
        for node in ast.walk(ast.parse(path.read_text())):  # the list of checks: (code, message, function)
            if not isinstance(node, ast.Tuple) or len(node.elts) != 3:
                continue
            code, message, function = node.elts
            texts = isinstance(code, ast.Constant | ast.Name) and isinstance(message, ast.Constant)
            if texts and isinstance(function, ast.Name | ast.Call):
                codes.add(code.value if isinstance(code, ast.Constant) else getattr(preflight, code.id))
    assert codes == first_cells("preflight.md") - {"code"}


@pytest.mark.slow
def test_health_codes():
    codes = set().union(*(first_arguments(path).get("notes.add", set()) for path in SOURCE.rglob("*.py")))
    hta = {"not-in-hta", "one-file-a-rank", "one-run"}
    assert codes - hta == first_cells("health.md") - {"code"}
    assert hta <= {*re.findall(r"`([a-z-]+)`", (DOCS / "hta.md").read_text())}


def test_messages_in_troubleshooting_exist():
    rows = (DOCS / "how-to" / "troubleshooting.md").read_text().partition("\n## By message")[2].splitlines()
    parts = [part for row in rows if row.startswith("| `") for part in re.findall(r"`([^`]+)`", row.split("|")[1])]
    source = "".join(path.read_text() for folder in ("tracediff", "cli") for path in (ROOT / folder).rglob("*.py"))
    assert len(parts) > 40
    assert [part for part in parts if part not in source] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("charts.md", {*charts.NAMES, *charts.OF_SET}),
        ("concepts.md", STATES),
        ("dashboard.md", [title for title, _ in PAGES.values()]),
        ("families.md", {*(family for family, _ in RULES), OTHER}),
        ("matching.md", LEVELS),
    ],
)
def test_names_have_a_row(page, names):
    assert {*names} - first_cells(page) == set()


@pytest.mark.parametrize(
    "names",
    [TABLES, OVER_RANKS, WORKLOADS],
    ids=["tables", "tables over ranks", "workloads"],
)
def test_names_are_documented(names):
    text = documentation()
    assert [name for name in names if not re.search(rf"[`\[| ]{re.escape(name)}[`\]| ]", text)] == []


def test_views_are_documented():
    named = " ".join(re.findall(r"--by ([a-z|]+)", documentation()))
    assert {*VIEWS} - {*re.split(r"[| ]", named)} == set()


def test_cautions_that_stop_a_check():
    assert {code for code in STOPPING if not re.search(rf"\b{code}\b", (DOCS / "ci.md").read_text())} == set()


def test_commands():
    assert [name for name in COMMANDS if f"tracediff {name}" not in documentation()] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_options(command):
    if command == "collect":  # its options are argparse's: a GPU host may lack click
        options = [o for action in parser()._actions for o in action.option_strings if o != "--help"]
    else:
        found = cli.get_command(click.Context(cli), command)
        commands = found.commands.values() if isinstance(found, click.Group) else [found]
        shown = [p for one in commands for p in one.params if not getattr(p, "hidden", False)]
        options = [o for p in shown for o in (*p.opts, *p.secondary_opts)]
    long = [o for o in options if o.startswith("--")]
    assert long or command == "doctor"  # which has none
    assert [o for o in long if not re.search(rf"{o}(?![\w-])", documentation())] == []


def test_public_names():
    (row,) = (line for line in (DOCS / "stability.md").read_text().splitlines() if line.startswith("| Python |"))
    assert sorted(re.findall(r"`tracediff\.(\w+)`", row)) == sorted(tracediff.__all__)


def test_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [name for name in extras if f"`{name}`" not in documentation() and f"[{name}]" not in documentation()] == []


def keys_and_values(node):
    """(the keys of all objects of a schema, without the columns of tables; its enumerated values)."""
    keys, values = set(), set()
    if isinstance(node, dict):
        keys |= node.get("properties", {}).keys()
        values |= {value for value in node.get("enum", ()) if isinstance(value, str)}
        node = [value for key, value in node.items() if key != "tables"]
    for part in node if isinstance(node, list) else ():
        more = keys_and_values(part)
        keys, values = keys | more[0], values | more[1]
    return keys, values


@pytest.mark.parametrize("name", DOCUMENTS)
def test_keys_of_the_json(name):
    keys, values = keys_and_values(json_schema(name))
    pages = [(DOCS / page).read_text() for page in JSON_PAGES[name]]
    if name == "tracediff.profile/1":
        pages[0] = pages[0].partition("\n## JSON\n")[2]
    documented = [{*re.findall(r"`([a-z][a-z0-9_]*)`", page)} for page in pages]
    assert keys - set().union(*documented) == set(), "keys that no page documents"
    assert documented[0] - keys - values == set(), "documented keys that no document has"


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found, seen = set(), {}
    for heading in re.findall(r"^#+ +(.*?) *$", prose(page.read_text()), re.MULTILINE):
        text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page):
    text = re.sub(r"`[^`\n]*`", "code", prose(page.read_text()))
    missing = []
    for link in re.findall(r"\]\(\s*<?([^)\s>]+)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert missing == []


def test_pages_cited_in_code_exist():
    cited = {
        (name, path.relative_to(ROOT).as_posix())
        for path in SOURCES
        for name in re.findall(r"\bdocs/[\w./-]*\w", path.read_text())
    }
    assert ("docs/health.md", "tracediff/ingest/model/health.py") in cited
    assert [citation for citation in sorted(cited) if not (ROOT / citation[0]).exists()] == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_cited_in_pages_exist(page):
    """Paths from the root, and modules as docs/design.md writes them: from their stage."""
    module, file = r"(?:[\w-]+/)*[\w-]+\.py", r"(?:tests|benchmarks|tracediff|docs)/[\w./-]+\.\w+"
    cited = re.findall(rf"`({module}|{file})`", page.read_text())
    assert [
        n for n in cited if not (ROOT / n).exists() and not any(f.as_posix().endswith(f"/{n}") for f in SOURCES)
    ] == []


def test_the_commands_of_the_recipes_are_valid():
    page = (DOCS / "how-to" / "recipes.md").read_text()
    commands = [part for line in re.findall(r"^(tracediff .*)$", page, re.MULTILINE) for part in line.split(" && ")]
    assert len(commands) > 20
    for command in commands:
        name, *words = shlex.split(command)[1:]
        if name == "collect":  # argparse's
            continue
        found = cli.get_command(click.Context(cli), name)
        if isinstance(found, click.Group):
            found, words = found.commands[words[0]], words[1:]
        context = found.make_context(name, words)
        table_names(context.params.get("tables") or context.params.get("table") or ())


@pytest.mark.parametrize(
    ("kind", "modules", "page"),
    [
        ("CauseReason", [reasons], "facts-and-reasons.md"),
        ("Fact", [facts], "facts-and-reasons.md"),
        ("Reason", [preflight, compare], "preflight.md"),
    ],
)
def test_every_code_is_documented(kind, modules, page):
    documented = set(re.findall(r"^\| `?([\w-]+)`? \|", (DOCS / page).read_text(), re.MULTILINE))
    codes = set()
    for module in modules:
        for call in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == kind:
                code = getattr(call.args[0], "value", None) or getattr(module, getattr(call.args[0], "id", ""), None)
                codes |= {code} if isinstance(code, str) else set()
    assert len(codes) >= 5
    assert codes <= documented
