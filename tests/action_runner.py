"""Runs the steps of ``action.yml`` as GitHub's runner does: conditions, expressions, environment, outputs.

Steps of other actions are played: the cache is a folder per key, an artefact the list of its files.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
TOKEN = re.compile(r"\s*('[^']*'|==|!=|&&|\|\||[\w.-]+)")


@dataclass
class Run:
    """What a run of the action left."""

    code: int = 0
    log: str = ""
    summary: str = ""
    outputs: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    artefact: list = field(default_factory=list)


class Runner:
    """A workspace, and the caches of its repository."""

    def __init__(self, workspace, temporary):
        self.workspace, self.temporary = workspace, temporary
        self.caches = {}  # key → bytes of the cached file
        self.number = 0

    def run(self, github=None, event=None, **inputs):
        """Run the steps until one fails.

        Args:
            github: GITHUB_* variables. event: path of the event's JSON. inputs: with ``_`` for ``-``.
        """
        self.number += 1
        values = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
        given = {name.replace("_", "-"): text for name, text in inputs.items()}
        assert given.keys() <= values.keys()
        context = {f"inputs.{name}": text for name, text in {**values, "install": "none", **given}.items()}
        context |= {"github.token": "a-token"}
        context = {name: expand(text, context) for name, text in context.items()}
        run, environment = Run(), self.environment(github or {}, event)
        for step in ACTION["runs"]["steps"]:
            if not truth(evaluate(step.get("if", "'yes'"), context)):
                continue
            run.steps.append(step["name"])
            if "uses" in step:
                self.play(step, context, run)
                continue
            assert step["shell"] == "bash"
            given = {name: expand(text, context) for name, text in step.get("env", {}).items()}
            self.start(step, {**environment, **given}, run)
            context |= {f"steps.{step.get('id')}.outputs.{name}": text for name, text in run.outputs.items()}
            if run.code:
                break
        run.outputs = {name: expand(spec["value"], context) for name, spec in ACTION["outputs"].items()}
        return run

    def environment(self, github, event):
        """The environment of a step, which has only what GitHub sets."""
        kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(event or ""),
            "GITHUB_REF_NAME": "main",
            "GITHUB_REPOSITORY": "someone/model",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RUN_ID": str(1000 + self.number),
            "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_ARCH": "X64",
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.temporary),
            **github,
        }

    def start(self, step, environment, run):
        """Run the script of a step; ``run.outputs`` are then those of the step."""
        files = {name: self.temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env=environment | {name: str(path) for name, path in files.items()},
            capture_output=True,
            text=True,
        )
        run.code, run.log = done.returncode, run.log + done.stdout + done.stderr
        run.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        run.outputs = dict(line.split("=", 1) for line in lines)

    def play(self, step, context, run):
        """What the action of another repository would do."""
        given = {name: expand(str(text), context) for name, text in step.get("with", {}).items()}
        name = step["uses"].partition("@")[0]
        path = self.workspace / given.get("path", "").strip()
        if name == "actions/cache/save":
            assert "," not in given["key"]
            assert len(given["key"]) <= 512
            self.caches[given["key"]] = path.read_bytes()
        elif name == "actions/cache/restore":
            found = [key for key in self.caches if key.startswith(given["restore-keys"])]
            if found:
                path.write_bytes(self.caches[found[-1]])
        elif name == "actions/upload-artifact":
            run.artefact = sorted(found.name for found in path.parent.glob(path.name))
        else:
            assert name == "actions/setup-python"


def expand(text, context):
    """``text`` with its expressions evaluated."""
    return EXPRESSION.sub(lambda match: evaluate(match[1], context), text)


def evaluate(expression, context):
    """The value of an expression: ``||`` of ``&&`` of comparisons; an unknown name is empty."""
    return first_true([all_true(part.split("&&"), context) for part in expression.split("||")])


def first_true(values):
    return next((value for value in values if truth(value)), values[-1])


def all_true(parts, context):
    values = [comparison(TOKEN.findall(part), context) for part in parts]
    return next((value for value in values if not truth(value)), values[-1])


def comparison(tokens, context):
    values = [token[1:-1] if token.startswith("'") else context.get(token, "") for token in tokens[::2]]
    if len(tokens) == 1:
        return values[0]
    _, operator, _ = tokens
    return "true" if (values[0] == values[1]) == (operator == "==") else ""


def truth(value):
    return value != ""
