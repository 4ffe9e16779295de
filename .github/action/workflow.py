"""What GitHub gives to a step of a workflow, and what it takes from it.

What comes from a pull request (branch, traces, event) is data: it arrives in the environment, never in a script.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn


def setting(name: str) -> str:
    """A variable of the environment, empty where it is not set."""
    return os.environ.get(name, "").strip()


def event() -> dict[str, Any]:
    """What started the workflow; empty outside of one."""
    path = setting("GITHUB_EVENT_PATH")
    return dict(json.loads(Path(path).read_text())) if path else {}


def output(**values: str) -> None:
    """Set the step's outputs; a line break in a value would begin another output."""
    lines = [f"{name.replace('_', '-')}={' '.join(value.splitlines())}\n" for name, value in values.items()]
    _append("GITHUB_OUTPUT", "".join(lines))


def summarise(markdown: str) -> None:
    """Add to the summary of the job."""
    _append("GITHUB_STEP_SUMMARY", markdown)


def annotate(level: str, message: str) -> None:
    """Show a ``notice``, ``warning`` or ``error`` on the page of the run."""
    text = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{level} title=tracediff::{text}", flush=True)


def refuse(message: str) -> NoReturn:
    """End the step with an error of one line."""
    annotate("error", message)
    sys.exit(2)


def _append(variable: str, text: str) -> None:
    path = setting(variable)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
