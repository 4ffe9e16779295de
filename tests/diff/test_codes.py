"""Where a page shows the work of a finding, the finding exists."""

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


def test_where_findings_are_seen():
    assert {*html_sections.SEEN_IN, *overview.SEEN_IN, *overview.LISTED_IN} <= documented("findings.md")
    assert not {*overview.SEEN_IN} & {*overview.LISTED_IN}
    assert {*overview.SEEN_IN.values()} <= {*PAGES}
    assert {*overview.LISTED_IN.values()} <= {*TABS}
