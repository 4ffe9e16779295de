"""Settings and fixtures of the whole suite."""

import gc
import os
import sys

import properties  # noqa: F401  # loads the profile of property tests
from browser import browser, idle_pages, session_page, visit  # noqa: F401
from deselected import pytest_deselected, pytest_testnodedown  # noqa: F401
from needs import mark_by_needs, pytest_runtest_protocol  # noqa: F401
from pair_stories import follow_each_other

sys.modules.setdefault("rfc3987_syntax", None)
"""jsonschema imports it, where it is installed, to check the format iri, which no schema here has: that import builds a
grammar, for seconds.
"""

os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
"""Each compiling process would spend 10 s on the compiler's kinds of vectors and on its headers, and each kernel half a
second on the headers of vectors.
"""


def pytest_collection_modifyitems(items: list) -> None:
    """Mark and order the tests."""
    mark_by_needs(items)
    follow_each_other(items)


def pytest_collection_finish() -> None:
    """Leave all that is imported by now out of later searches for garbage: each takes a third of a second with it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
