"""For users of Holistic Trace Analysis (HTA): its TraceDiff as a drop-in over our profiles, and its own analyses over
our columns.

    from tracediff.hta import TraceDiff     # was: from hta.trace_diff import TraceDiff
    from tracediff.hta import analysis      # HTA's TraceAnalysis of a set that tracediff has read; needs the extra
    `hta`

docs/hta.md lists where either differs from HTA.
"""

from tracediff.hta.analyses import SECTIONS, Section, analysis, sections
from tracediff.hta.trace_diff import (
    MOST_BARS,
    OUTSIDE,
    STEPS_FOLDED,
    BadArgument,
    DeviceType,
    LabeledTrace,
    TraceDiff,
    short_name,
)

__all__ = [
    "MOST_BARS",
    "OUTSIDE",
    "SECTIONS",
    "STEPS_FOLDED",
    "BadArgument",
    "DeviceType",
    "LabeledTrace",
    "Section",
    "TraceDiff",
    "analysis",
    "sections",
    "short_name",
]
