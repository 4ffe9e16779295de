"""Functions that another commit has at other lines are the same functions."""

import pytest

from tracediff.aggregate.averages import SetTable
from tracediff.diff.accounts import compare_table
from tracediff.diff.views import moved_lines
from tracediff.profile.tables.critical import CRITICAL


@pytest.mark.parametrize(
    ("control", "test", "moved"),
    [
        (["a.py(3): f"], ["a.py(9): f"], {"a.py(3): f": "a.py(9): f"}),
        (["a.py(3): f", "a.py(20): f"], ["a.py(4): f", "a.py(9): f"],
         {"a.py(3): f": "a.py(4): f", "a.py(20): f": "a.py(9): f"}),
        (["a.py(3): f", "a.py(20): f"], ["a.py(4): f"], {}),
        (["a.py(3): f", "a.py(8): g"], ["b.py(4): f", "b.py(9): g"],
         {"a.py(3): f": "b.py(4): f", "a.py(8): g": "b.py(9): g"}),  # a renamed file
        (["a.py(3): f", "c.py(1): k"], ["b.py(3): f", "c.py(1): k", "a.py(1): k"], {"c.py(1): k": "c.py(1): k"}),
        (["a.py(3): f", "a.py(8): g"], ["b.py(3): f", "b.py(8): h"], {}),
        (["a.py(100): <listcomp>", "a.py(20): <listcomp>"], ["a.py(101): <listcomp>", "a.py(21): <listcomp>"],
         {"a.py(20): <listcomp>": "a.py(21): <listcomp>", "a.py(100): <listcomp>": "a.py(101): <listcomp>"}),
        (["a.py(1%s): f" % ("0" * 5000)], ["a.py(2): f"], {}),  # a number that Python refuses to read
        (["no line", ""], ["no line", ""], {}),
    ],
)  # fmt: skip
def test_lines(control, test, moved):
    assert moved_lines(control, test) == moved
    assert moved_lines(test, control) == {new: old for old, new in moved.items()}


def of_table(*rows):
    """Rows of the critical path: kind, name → ns on the path and in the period."""
    return SetTable(schema=CRITICAL, denominator=1, rows={key: [ns] * len(CRITICAL.columns) for key, ns in rows})


def joined(control, test):
    return {key: tuple(row[0]) for key, row in compare_table(of_table(*control), of_table(*test), 1).rows.items()}


def test_rows_of_lines_that_moved_and_of_calls_of_two_vendors_are_one():
    control = [
        (("in Python", "module.py(10): call"), 5),
        (("call", "cudaLaunchKernel"), 3),
        (("call", "cuLaunchKernel"), 2),
    ]
    test = [(("in Python", "module.py(12): call"), 7), (("call", "hipLaunchKernel"), 4)]
    assert joined(control, test) == {("in Python", "module.py(12): call"): (5, 7), ("call", "LaunchKernel"): (5, 4)}
    assert joined(test, control) == {("in Python", "module.py(10): call"): (7, 5), ("call", "LaunchKernel"): (4, 5)}


def test_calls_of_one_vendor_stay_apart():
    control, test = (
        [(("call", "cudaLaunchKernel"), 3)],
        [(("call", "cudaLaunchKernel"), 2), (("call", "cuLaunchKernel"), 1)],
    )
    assert joined(control, test) == {("call", "cudaLaunchKernel"): (3, 2), ("call", "cuLaunchKernel"): (0, 1)}
