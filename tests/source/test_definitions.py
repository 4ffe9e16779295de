"""Definitions of Python code: found by line, and alike exactly where they run the same."""

import pytest
from hypothesis import given, strategies as st

from tracediff.source.code import parse

CODE = '''import torch

SIZE = 3


class Model(torch.nn.Module):
    kind = "a"

    @torch.no_grad()
    def forward(self, x, k=2):
        """What it does."""
        y = x * SIZE
        return [y + i for i in range(k)]


def helper(a):
    return lambda b: a + b
'''


def codes(text):
    return {d.name: d.code for d in parse("model.py", text).definitions}


def test_the_definitions_with_their_lines():
    found = [(d.name, d.first, d.last, d.is_statement) for d in parse("model.py", CODE).definitions]
    assert found == [
        ("torch", 1, 1, True),
        ("SIZE", 3, 3, True),
        ("Model", 6, 13, False),
        ("Model.forward", 9, 13, False),
        ("helper", 16, 17, False),
    ]


@given(st.sets(st.integers(0, len(CODE.splitlines()))), st.sampled_from(["", "# why"]))
def test_comments_and_blank_lines_change_nothing(places, line):
    lines = CODE.splitlines()
    for place in sorted(places, reverse=True):
        lines.insert(place, line)
    assert codes("\n".join(lines)) == codes(CODE)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("y = x * SIZE", "y = x * 4", {"Model.forward"}),
        ("k=2", "k=3", {"Model.forward"}),
        ("@torch.no_grad()", "@torch.inference_mode()", {"Model.forward"}),
        ('kind = "a"', 'kind = "b"', {"Model"}),
        ("SIZE = 3", "SIZE = 4", {"SIZE"}),
        ("a + b", "a - b", {"helper"}),
        ("def helper(a):", "def helper(a: int) -> int:", set()),
        ("        y = x * SIZE\n        return [y", "        z = x * SIZE\n        return [z", set()),
        ('"""What it does."""', '"""Written otherwise."""', set()),
        ("SIZE = 3", "SIZE: int = 3", None),
    ],
)
def test_what_changes_what_runs(old, new, changed):
    assert old in CODE
    before, after = codes(CODE), codes(CODE.replace(old, new))
    if changed is not None:
        assert {name for name in {*before, *after} if before.get(name) != after.get(name)} == changed


@given(st.text())
def test_any_text_is_parsed_or_refused(text):
    found = parse("a.py", text)
    assert found is None or all(d.first <= d.last for d in found.definitions)


@pytest.mark.parametrize("text", ["(" * 100_000, "x = " + "-" * 200_000 + "1", "a" * (2 << 20), "\0", "def f(:\n"])
def test_hostile_code_is_refused(text):
    assert parse("a.py", text) is None
