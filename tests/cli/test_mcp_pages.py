"""Pages of answers: joined they are the whole text, and each has fewer tokens than the limit."""

import string

import pytest
from hypothesis import example, given, strategies as st
from properties import examples
from tracediff_cli.mcp_server.answers import most_tokens, pages

from tracediff import bounds

LETTERS = st.sampled_from(["a", " ", "  ", "\n", "\n\n", "\r\n", "\u2028", "😀", "漢", "\x00", "é", "\ufeff", "0"])
PARTS = st.tuples(st.one_of(LETTERS, st.text(max_size=8)), st.integers(1, 6000)).map(lambda pair: pair[0] * pair[1])


@pytest.mark.slow
@examples(200)
@given(st.lists(PARTS, max_size=12).map("".join))
@example("")
@example("\n" * 10_000)
@example("x" * 100_000)
@example("😀" * 5_000)
@example(" " * 100_000)
def test_joined_pages_are_the_text_and_each_is_below_the_limit(text):
    found = pages(text)
    assert "".join(found) == text
    assert found
    assert all(most_tokens(page) <= bounds.ANSWER_TOKENS - bounds.NEXT_PAGE_TOKENS for page in found)
    assert all(found) or found == [""]


@examples(200)
@given(st.text())
def test_no_text_has_more_tokens_than_bytes_with_runs_of_spaces_as_one(text):
    """A token of a vocabulary of bytes has one byte or more, and vocabularies have runs of up to 16 spaces."""
    bytes_without_spaces = len(text.replace(" ", "").encode())
    assert bytes_without_spaces <= most_tokens(text) <= len(text.encode())
    assert most_tokens(" " * 16 + text) <= most_tokens(text) + 1


def test_a_page_ends_after_a_table_where_it_can():
    table = "Kernels\n" + "".join(f"  {letter * 60}\n" for letter in string.ascii_letters[:20]) + "\n"
    found = pages(table * 9)
    assert len(found) > 1
    assert all(page.startswith("Kernels\n") and page.endswith("\n\n") for page in found)
    assert pages("short\n") == ["short\n"]
    long_line = "k" * 50_000
    assert [len(page) for page in pages(long_line)][:-1] == [950 * 4] * 13
