"""Decides where results go, and what to compare with: a snapshot in the repository, or the last of the base branch.

Runs on a branch keep their snapshot in the cache; runs for a pull request find the newest one of their base branch.
Caches need no server, and a pull request can read those of its base branch, but not replace them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import quote

from workflow import event, output, refuse, setting

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
RESULTS = Path(".tracediff")


def main() -> None:
    """Check the inputs, and output folder, label, branch, baseline and the key in the cache."""
    name, baseline = setting("NAME"), setting("BASELINE")
    if not NAME.fullmatch(name):
        refuse(f"name {name!r}: not a name; use up to 64 letters, digits, '.', '_' and '-'")
    if bool(setting("TRACES")) == bool(setting("COLLECT")):
        refuse("give either traces or collect")
    if setting("COLLECT") and setting("GITHUB_EVENT_NAME") == "pull_request_target":
        refuse(
            "collect with pull_request_target would run a stranger's code beside a token that can write;"
            " use the event pull_request"
        )
    if baseline and not Path(baseline).exists():
        refuse(f"{baseline}: no such file; commit new.tdprof.gz of an artefact under this name, or leave out baseline")
    base = base_branch()
    branch = base or setting("GITHUB_REF_NAME")
    prefix = f"tracediff/{name}/{setting('RUNNER_OS')}-{setting('RUNNER_ARCH')}/{quote(branch, safe='')}/"
    folder = empty_folder(name)
    output(
        folder=folder.as_posix(),
        snapshot=f"{folder.as_posix()}/{'new' if base or baseline else 'base'}.tdprof.gz",
        label=label(),
        branch=branch,
        baseline=baseline or (f"{folder.as_posix()}/base.tdprof.gz" if base else ""),
        cache="" if baseline else "restore" if base else "save",
        prefix=prefix,
        key=f"{prefix}{setting('GITHUB_RUN_ID')}-{setting('GITHUB_RUN_ATTEMPT')}",
    )


def base_branch() -> str:
    """The branch that a pull request, or a merge queue, would change; empty on a branch."""
    queued = event().get("merge_group", {}).get("base_ref", "")
    return setting("GITHUB_BASE_REF") or queued.removeprefix("refs/heads/")


def label() -> str:
    """Branch and commit of the traces, as the results name them."""
    commit = event().get("pull_request", {}).get("head", {}).get("sha") or setting("GITHUB_SHA")
    return f"{setting('GITHUB_HEAD_REF') or setting('GITHUB_REF_NAME')} {commit[:7]}".strip()


def empty_folder(name: str) -> Path:
    """The folder of the results, which git ignores; without those of a former run on this machine. The checkout may
    contain what a pull request put there: nothing is written or removed through a link.
    """
    folder, ignored = RESULTS / name, RESULTS / ".gitignore"
    for path in (RESULTS, folder, ignored):
        is_other = path.exists() and path.is_dir() == (path == ignored)
        if path.is_symlink() or is_other:
            refuse(f"{path}: a link, or no {'file' if path == ignored else 'folder'}; remove it from the repository")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    ignored.write_text("*\n")
    return folder


if __name__ == "__main__":
    main()
