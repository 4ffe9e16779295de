"""Names from traces in every kind of text: a parser of it reads them back, and finds nothing beside them."""

import csv
import io
import json
import re
import unicodedata
from xml.etree import ElementTree

import pytest
from build_trace import call, document, kernel, op, step
from click.testing import CliRunner
from hypothesis import given, strategies as st
from inert_markdown import LINKED, parsed
from properties import examples
from tracediff_cli.group import cli

from tracediff.errors import log_line, printable
from tracediff.profile.kernels.display_names import display_name
from tracediff.report.escape import csv_cell, escaped

NAMES = (
    "@torvalds #1",
    "see torvalds/linux#12, GH-34 and (@org/team)",
    "fixes 0123456789abcdef0123456789abcdef01234567",
    "::error::pwn",
    "  ::set-output name=x::y",
    "##[error]pwn ##vso[task.complete] ##teamcity[x]",
    "x\r=cmd|'/C calc'!A0",
    "\n=1+1",
    "  +1",
    "\t@SUM(A1)",
    "-2+3+cmd",
    "＝1+1",
    " ＠x",
    'a,"b";c\n\rd',
    "<script>alert(1)</script><!-- & &amp; &#64;",
    "[x](javascript:alert(1)) ![y](//z) <b>*_~`~_*</b> | `|` \\| $x$ https://e.com www.e.com a@b.c",
    "\x1b]0;title\x07\x1b[31m \u202eright\u2066",
    "\ufeff\u200b=x \ud800",
    "`a`` ```b ` `c`, (`d`) \\`e\\` `<b>` `x|y` `",
    ":tada: x :+1: a:b:c https://e.com/x //e.com e.com. mailto:a@b.c",
    "<!channel> <@U1> <#C1|general> <https://e.com|x> &lt;!here&gt;",
    "- [ ] x",
    "1. x",
    "===",
    "> [!NOTE] x",
    "|:--|--:|",
    "a\\| b \\\\| c \\",
)


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet may compute a cell that is read as text."""
    kept = "".join(c for c in cell if unicodedata.category(c)[0] not in "CZ")
    return unicodedata.normalize("NFKC", kept)[:1] in ("=", "+", "-", "@") and not re.fullmatch(r"[+-]\d+", cell)


def is_command(line: str) -> bool:
    """Whether a line of a log is a command: GitHub's runner skips blanks before `::` and finds `##[` anywhere; so do
    Azure's `##vso[` and TeamCity's.
    """
    return line.strip().startswith("::") or re.search(r"##\w*\[", line) is not None


@pytest.mark.parametrize("name", NAMES)
def test_csv(name):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([csv_cell(name), csv_cell(-1.5), csv_cell("-3")])
    ((cell, number, text),) = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert cell.removeprefix("'") == printable(name)
    assert not is_formula(cell)
    assert (number, text) == ("-1.5", "-3")
    assert "\r" not in out.getvalue()


PLACES = ("| a | {} |\n|:--|--:|\n| b | {} |\n", "- **z {}**: y\n  - {}\n", "## z {}\n", "{}\n", "![{}](x.png)\n")
"""Where Markdown has a name: in cells, list items, headings, as a paragraph, and in images."""


def letters(text):
    """``text`` without blanks and the signs that mark code and bars."""
    return re.sub(r"[`\\\u200b\s]", "", text)


def assert_inert(name):
    """Markdown shows ``name`` as it is, wherever it is; also unrendered, but for marks of code and backslashes."""
    written, wanted = escaped(name), printable(name)
    for place in PLACES:
        plain, shown = (parsed(place.replace("{}", text)) for text in ("Z", written))
        assert [letters(text) for text in shown] == [letters(text.replace("Z", wanted)) for text in plain]
    assert letters(written) == letters(wanted)
    assert not any(f"<{sign}" in written for sign in "!@#")


@pytest.mark.parametrize("name", NAMES)
def test_markdown(name):
    assert_inert(name)


@examples(300)
@given(st.text(st.sampled_from("`|*_<>&@#~$[]()!:/.\\-=+1 aw\n"), min_size=1, max_size=24).filter(str.strip))
def test_markdown_of_any_signs(name):
    assert_inert(name)


def test_what_github_would_link_is_found():
    live = ("@name", "(@org/team)", "#1", "a/b#12", "GH-34", "0123abc", "e.com", "http://x", ":x:", "$x$")
    assert all(map(LINKED.search, live))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("aten::copy_ took 3.5 ms (aten::mm: 2).", "`aten::copy_` took 3.5 ms (`aten::mm`: 2)."),
        ("void f<float, 4>(int) → C++ 1,234567", "void `f<float, 4>(int)` → C++ 1,234567"),
        ("run `tracediff collect`, or see (`x`)", "run `tracediff collect`, or see (`x`)"),
        ("no change: op: gemm, 95 % − 5 (a/b)", "no change: op: gemm, 95 % − 5 (a/b)"),
        ("commit 0a1b2c3d of rank0.json.gz", "commit `0a1b2c3d` of `rank0.json.gz`"),
        ("a|b*c", r"a\|`b*c`"),
    ],
)
def test_markdown_is_readable_where_nothing_renders_it(text, written):
    assert escaped(text) == written


@pytest.mark.parametrize("name", NAMES)
def test_logs(name):
    for line in (name, f"  {name}", f"x {name}"):
        shown = log_line(printable(line))
        assert not is_command(shown)
        assert shown.replace(": :", "::").replace("# #", "##") == printable(line)
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Two traces whose operators and kernels have the names; those of the test take longer."""
    folder = tmp_path_factory.mktemp("names")
    paths = []
    for side, longer in (("control", 1), ("test", 1.5)):
        events = []
        for number in range(3):
            start = 12_000 * number
            events.append(step(number + 1, start, 11_000))
            for k, name in enumerate(NAMES):
                at, link = start + 400 * k, 100 * number + k + 1
                events += [op(name, at, 100 * longer), call("cudaLaunchKernel", at + 20, 5, correlation=link)]
                events.append(kernel(f"{name} {k}" if k % 2 else name, at + 60, 200 * longer, correlation=link))
        path = folder / f"{side}.json"
        path.write_text(json.dumps(document(events)))
        paths.append(str(path))
    return paths


COMMANDS = (
    ("compare", "-v", "--device", "all", "--top", "99"),
    ("compare", "--by", "kernel"),
    ("compare", "--table", "all"),
    ("explain", "--events", "--", "::error"),
    ("explain", "--events", "--", "##[err"),
    ("explain", "--", "::"),
    ("compare", "--json", "-"),
    ("compare", "--markdown", "-"),
    ("check", "--limit", "op:*=1%"),
    ("check", "--limit", "op:*=1%", "--markdown", "-"),
    ("check", "--limit", "op:*=1%", "--json", "-"),
    ("analyze", "--table", "all"),
    ("matrix",),
)


@pytest.mark.parametrize(
    ("arguments", "width"), [(c, width) for c in COMMANDS for width in ("40", "200") if "-" not in c or width == "200"]
)
def test_no_command_prints_a_workflow_command(sets, arguments, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    name, *options = arguments
    result = CliRunner().invoke(cli, [name, *(sets[:1] if name == "analyze" else sets), *options])
    assert result.exit_code in (0, 1, 3)
    assert result.stdout.strip()
    assert not [line for line in result.stdout.splitlines() if is_command(line)]
    assert "\x1b" not in result.stdout
    if "--json" in options:
        assert NAMES[5] in json.dumps(json.loads(result.stdout))


def test_exported_tables(sets, tmp_path):
    assert CliRunner().invoke(cli, ["export", *sets, "--csv", str(tmp_path), "--table", "all"]).exit_code == 0
    seen = set()
    for path in tmp_path.glob("*.csv"):
        with path.open(newline="") as file:
            head, *rows = list(csv.reader(file))
        assert all(len(row) == len(head) for row in rows), path.name
        seen |= {cell.removeprefix("'") for row in rows for cell in row}
        assert not [cell for row in rows for cell in row if is_formula(cell) and not re.fullmatch(r"-[\d.e-]+", cell)]
    assert {printable(name) for name in NAMES} <= seen


def test_junit(sets, tmp_path):
    file = tmp_path / "junit.xml"
    CliRunner().invoke(cli, ["check", *sets, "--limit", "op:*=1%", "--junit", str(file)])
    cases = [case.attrib["name"] for case in ElementTree.parse(file).iter("testcase")]
    assert {f"op:{display_name(name)}" for name in NAMES} <= set(cases)
