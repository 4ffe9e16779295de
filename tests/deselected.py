"""The number of deselected tests in the last line of a run on several processes, which pytest-xdist leaves out."""

from types import SimpleNamespace
from typing import Any

import pytest


def pytest_deselected(items: list[pytest.Item]) -> None:
    """In a worker: tell the controller how many."""
    output = getattr(items[0].config, "workeroutput", {})
    output["deselected"] = output.get("deselected", 0) + len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the controller: count those of one worker, since every worker deselects the same tests."""
    reporter = node.config.pluginmanager.get_plugin("terminalreporter")
    reporter.stats["deselected"] = [SimpleNamespace()] * getattr(node, "workeroutput", {}).get("deselected", 0)
