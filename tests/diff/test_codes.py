"""Every finding has a kind that a rule raises, that docs/findings.md describes, and whose work a page shows."""

import re
from pathlib import Path

import pytest
from tracediff.diff.findings import kinds
from tracediff.diff.findings.kinds_table import with_table
from tracediff_dashboards.filters import TABS
from tracediff_dashboards.pages import PAGES

from tracediff.report.page.html_sections import SECTIONS

ROOT = Path(__file__).parents[2]


def test_the_table_of_findings_is_current():
    page = (ROOT / "docs/findings.md").read_text()
    assert with_table(page) == page, "run: python -m tracediff.diff.findings.kinds_table"


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.code)
def test_thresholds_of_a_finding_are_the_values_of_constants(kind):
    assert not re.search(r"\d ?(?:%|points|MiB)|\b(?:three|four|five|ten|half|tenth)\b", kind.meaning)


def test_every_kind_of_finding_is_raised_by_a_rule_and_has_a_code_of_its_own():
    rules = [p for p in (ROOT / "tracediff/diff/findings").glob("*.py") if not p.name.startswith("kinds")]
    source = "".join(p.read_text() for p in (*rules, ROOT / "tracediff/analysis/set_findings.py"))
    assert {getattr(kinds, name) for name in re.findall(r"\bkinds\.([A-Z_]+)", source)} == {*kinds.KINDS}
    assert len({kind.code for kind in kinds.KINDS}) == len(kinds.KINDS)


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.code)
def test_where_a_finding_is_seen_exists(kind):
    assert kind.section in SECTIONS
    assert kind.page in PAGES
    assert kind.tab in TABS
