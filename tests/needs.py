"""What a test may need beyond the core and the development tools: a marker for each, and a check that no test lacks it.

Tests that use the fixture `browser` or `hta` and tests of a module that imports torch are marked here;
`traces.needs_traces` is the marker `traces`; any other test carries its ``@pytest.mark``. Where a need is not met, its
tests are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

import pytest
from browser import BROWSER
from traces import FILES, FOLDER

SITE = Path(__file__).parents[1] / "build" / "site" / "index.html"
MISSING = {
    "browser": None if BROWSER else "Chromium is not installed: apt-get install chromium",
    "dask": None if find_spec("distributed") else "Dask is not installed: pip install 'torch-tracediff[scale]'",
    "frameworks": None
    if find_spec("transformers") and find_spec("lightning")
    else "transformers and Lightning, 190 MB, are not installed: pip install --group frameworks",
    "hta": None if find_spec("hta") else "Holistic Trace Analysis is not installed: pip install 'torch-tracediff[hta]'",
    "native": None if find_spec("tracediff_native") else "the native reader is not installed: pip install ./native",
    "site": None if SITE.exists() else "the documentation is not built: run `make docs`",
    "torch": None if find_spec("torch") else "torch is not installed: pip install 'torch-tracediff[collect]'",
    "traces": None if FILES else f"no traces in {FOLDER}: run `make traces`, or set TRACEDIFF_TRACES to their folder",
}
"""Need → why a test that has it is skipped on this machine; None where the need is met."""


def mark_by_needs(items: list[pytest.Item]) -> None:
    """Mark the tests by what they ask for, and skip those that ask for what is not there."""
    for item in items:
        needs = {need for need in MISSING if need in getattr(item, "fixturenames", ())}
        needs |= {"torch"} if hasattr(getattr(item, "module", None), "torch") else set()
        for need in sorted(needs):
            item.add_marker(need)
        for need, reason in MISSING.items():
            if reason and item.get_closest_marker(need):
                item.add_marker(pytest.mark.skip(reason=reason))


def needed(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The need that an audit event (PEP 578) of this process shows, None if it shows none."""
    if event == "import" and arguments[0] in ("hta", "torch"):
        return str(arguments[0])
    if event == "open" and str(arguments[0]).startswith(str(FOLDER)):
        return "traces"
    if event == "subprocess.Popen":
        command = [str(word) for word in arguments[1]]
        if BROWSER and PurePath(str(arguments[0])).name == PurePath(BROWSER).name:
            return "browser"
        if "tracediff.collect" in command or any("import torch" in word for word in command):
            return "torch"
        if any(word.startswith(str(FOLDER)) for word in command):
            return "traces"
    return None


running: list[pytest.Item] = []
"""The test that runs now, if one does."""


def check_marker(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail the running test if it needs what none of its markers names."""
    if running and (need := needed(event, arguments)) and not running[0].get_closest_marker(need):
        pytest.fail(f"this test lacks the marker {need!r}: {event} {arguments[0]}", pytrace=False)


sys.addaudithook(check_marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know which test runs."""
    running.append(item)
    try:
        return (yield)
    finally:
        running.clear()
