"""The real traces as sets, and their comparisons: many tests ask of the same pair, which each process reads once."""

from functools import lru_cache

from traces import FOLDER

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets


@lru_cache(maxsize=16)
def real_sets(*names: str) -> tuple[TraceSet, ...]:
    """The sets of these files or folders of real traces."""
    return tuple(load_sets([FOLDER / name for name in names]))


@lru_cache(maxsize=16)
def real_comparison(control: str, test: str) -> Comparison:
    """Two of them compared, also where the preflight refuses."""
    return compare_sets(*real_sets(control, test), force=True)


COMMAND = "tracediff compare control/ test/ --html report.html"
"""What reports of tests name as the command that wrote them."""


@lru_cache(maxsize=4)
def real_report(control: str, test: str) -> str:
    """The report of two of them."""
    from tracediff.report.page.html import to_html

    return to_html(real_comparison(control, test), COMMAND)
