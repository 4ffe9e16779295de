"""The glossary lists the words that the product shows: each is defined once, and the page is written from them."""

import re
import sys
from pathlib import Path

import pytest
from tracediff_dashboards.state.view import COLUMNS

from tracediff.diff.matching.items import LEVELS
from tracediff.diff.statistics.many import Significance
from tracediff.diff.verdict import RESULTS
from tracediff.explain.tree import EFFECTS
from tracediff.present.terms import meaning, sections
from tracediff.profile.events.step_states import LABELS, STATES
from tracediff.profile.placement.scopes import PHASES

DOCS = Path(__file__).parents[2] / "docs"
ROWS = "faster", "slower", "same", "unclear", Significance().time_change


def test_the_page_is_written_from_the_terms(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(DOCS / "site")])
    from glossary import glossary

    assert (DOCS / "glossary.md").read_text() == glossary()  # make outputs


@pytest.mark.parametrize(
    "words",
    [STATES, LABELS.values(), EFFECTS, LEVELS, RESULTS, ROWS, PHASES, [column.head for column in COLUMNS.values()]],
    ids=["states", "states in words", "effects", "match levels", "verdicts", "rows", "phases", "columns"],
)
def test_every_word_of_a_kind_is_a_term(words):
    assert [word for word in words if not meaning(word)] == []


def test_a_term_has_one_meaning_without_markup():
    names = [name for terms in sections().values() for names in terms for name in names.split(", ")]
    assert [name for name in set(names) if names.count(name) > 1] == ["op"]  # a state and a match level
    assert not any(re.search(r"\]\(|<!--|`", meaning(name)) for name in names)
    assert all(meaning(name) for name in names)


def test_links_lead_to_pages():
    for text in (text for terms in sections().values() for text in terms.values()):
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert (DOCS / target).is_file() or (DOCS / target).with_suffix("").is_dir()
