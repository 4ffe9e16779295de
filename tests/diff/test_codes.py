"""Every code that a finding or a preflight can have stands in the documentation, and no other."""

import re
from pathlib import Path

from tracediff_dashboards.filters import TABS
from tracediff_dashboards.pages import PAGES, overview

from tracediff.report.page import html_sections

ROOT = Path(__file__).parents[2]


def documented(page):
    rows = [line.split("|")[1] for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("| ")]
    return {
        code.strip() for row in rows for code in row.split(",") if re.fullmatch(r"\s*[a-z]+(-[a-z]+)*\s*", code)
    } - {"code"}


def test_findings():
    source = "".join(p.read_text() for p in (ROOT / "tracediff/diff/findings").glob("*.py"))
    written = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source)) | set(
        re.findall(r'"((?:slower|faster)-kernel|(?:dtype|layout)-change)"', source)
    )
    written |= set(re.findall(r'_state\(comparison, [^"]*(?:"\w+",? ?)+\), "([a-z-]+)"', source))
    assert written == documented("findings.md")


def test_where_findings_are_seen():
    assert {*html_sections.SEEN_IN, *overview.SEEN_IN, *overview.LISTED_IN} <= documented("findings.md")
    assert not {*overview.SEEN_IN} & {*overview.LISTED_IN}
    assert {*overview.SEEN_IN.values()} <= {*PAGES}
    assert {*overview.LISTED_IN.values()} <= {*TABS}


def test_preflight():
    source = (ROOT / "tracediff/diff/preflight.py").read_text() + (
        ROOT / "tracediff/diff/preflight_work.py"
    ).read_text()
    written = set(re.findall(r'Reason\("([a-z-]+)"', source)) | set(
        re.findall(r'^        \("([a-z-]+)", "', source, re.MULTILINE)
    )
    assert written == documented("preflight.md")
