"""Functions that another commit has at other lines are the same functions."""

import pytest

from tracediff.diff.views import moved_lines


@pytest.mark.parametrize(
    ("control", "test", "moved"),
    [
        (["a.py(3): f"], ["a.py(9): f"], {"a.py(3): f": "a.py(9): f"}),
        (["a.py(3): f", "a.py(20): f"], ["a.py(4): f", "a.py(9): f"],
         {"a.py(3): f": "a.py(4): f", "a.py(20): f": "a.py(9): f"}),
        (["a.py(3): f", "a.py(20): f"], ["a.py(4): f"], {}),
        (["a.py(3): f"], ["b.py(3): f"], {}),
        (["a.py(100): <listcomp>", "a.py(20): <listcomp>"], ["a.py(101): <listcomp>", "a.py(21): <listcomp>"],
         {"a.py(20): <listcomp>": "a.py(21): <listcomp>", "a.py(100): <listcomp>": "a.py(101): <listcomp>"}),
        (["a.py(1%s): f" % ("0" * 5000)], ["a.py(2): f"], {}),  # a number that Python refuses to read
        (["no line", ""], ["no line", ""], {}),
    ],
)  # fmt: skip
def test_lines(control, test, moved):
    assert moved_lines(control, test) == moved
    assert moved_lines(test, control) == {new: old for old, new in moved.items()}
