"""What git says does not depend on the user's configuration or environment, and none of their programs is run."""

import os
import subprocess
from pathlib import Path

import pytest

from tracediff.collect.user_code import git_commit
from tracediff.git import ELSEWHERE, Repository

SUBJECT = "Größe: naïve 改善"
PROGRAM = "{program}"
CONFIGURATION = (
    {"log.showSignature": "true", "gpg.program": PROGRAM},
    {"color.ui": "always", "color.status": "always", "color.diff": "always"},
    {"core.quotePath": "true", "core.abbrev": "4"},
    {"diff.external": PROGRAM, "diff.noprefix": "true", "diff.renames": "copies"},
    {"core.pager": PROGRAM, "pager.rev-list": PROGRAM, "pager.status": "true", "pager.rev-parse": "true"},
    {"alias.rev-list": f"!{PROGRAM}", "alias.rev-parse": f"!{PROGRAM}", "alias.status": f"!{PROGRAM}"},
    {"log.date": "relative", "log.decorate": "full", "log.showRoot": "false", "log.follow": "true"},
    {"format.pretty": "raw", "log.mailmap": "true", "log.abbrevCommit": "true"},
    {"core.fsmonitor": PROGRAM},
    {"core.fsmonitor": "true", "core.untrackedCache": "true"},
    {"core.hooksPath": "{hooks}"},
    {"i18n.logOutputEncoding": "UTF-16", "i18n.commitEncoding": "latin-1"},
    {"status.branch": "true", "status.short": "true", "status.showUntrackedFiles": "all", "status.showStash": "true"},
    {"status.submoduleSummary": "true", "submodule.recurse": "true", "status.aheadBehind": "true"},
    {"trace2.normalTarget": "1", "advice.detachedHead": "true"},
    {"worktree.guessRemote": "true", "checkout.guess": "true", "checkout.defaultRemote": "x"},
)
ENVIRONMENT = (
    {"GIT_DIR": "{other}/.git"},
    {"GIT_DIR": "{other}/.git", "GIT_WORK_TREE": "{other}"},
    {"GIT_WORK_TREE": "{other}"},
    {"GIT_INDEX_FILE": "{other}/.git/index"},
    {"GIT_OBJECT_DIRECTORY": "{other}/.git/objects"},
    {"GIT_COMMON_DIR": "{other}/.git"},
    {"GIT_NAMESPACE": "x", "GIT_PREFIX": "sub/"},
    {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "log.showSignature", "GIT_CONFIG_VALUE_0": "true"},
    {"GIT_EXTERNAL_DIFF": PROGRAM, "GIT_PAGER": PROGRAM, "PAGER": PROGRAM, "GIT_EDITOR": PROGRAM},
    {"GIT_TRACE": "1", "GIT_TRACE2": "1", "GIT_TRACE_SETUP": "1", "GIT_TRACE2_EVENT": "1"},
    {"GIT_LITERAL_PATHSPECS": "1", "GIT_OPTIONAL_LOCKS": "1", "GIT_FLUSH": "0"},
    {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "TERM": "dumb"},
)


def git(folder, *arguments, given=""):
    """The output of a git command in ``folder``, in a clean environment."""
    names = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **names}
    done = subprocess.run(["git", *arguments], cwd=folder, env=env, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A repository whose last commit has a signature, another one, and a program that leaves a mark where it runs."""
    folder = tmp_path_factory.mktemp("git")
    for name in ("repository", "other"):
        place = folder / name
        (place / "sub").mkdir(parents=True)
        git(place, "init", "-q", "-b", "main")
        (place / "sub" / "ä file.txt").write_text(name)
        git(place, "add", ".")
        git(place, "commit", "-q", "-m", f"First of {name}")
        git(place, "commit", "-q", "--allow-empty", "-m", SUBJECT)
    repository = folder / "repository"
    head, _, message = git(repository, "cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n none\n -----END PGP SIGNATURE-----"
    signed = git(repository, "hash-object", "-t", "commit", "-w", "--stdin", given=f"{head}\n{signature}\n\n{message}")
    git(repository, "update-ref", "HEAD", signed.strip())
    (repository / "untracked.txt").write_text("")
    program = folder / "program"
    program.write_text(
        f"#!/bin/sh\necho run >> {folder}/mark\necho gpg: Good signature\necho gpg: Good signature >&2\n"
    )
    program.chmod(0o755)
    (folder / "hooks").mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (folder / "hooks" / hook).symlink_to(program)
    return folder


def answers(repository):
    """Everything that is asked of a repository."""
    head = repository.commit("HEAD")
    first = repository.commit("HEAD~1")
    names = [first.name, head.name]
    place = repository.folder.parents[1] / "worktree"
    try:
        repository.run("worktree", "add", "--quiet", "--detach", str(place), names[0])
        listed = repository.run("worktree", "list", "--porcelain")
        content = (place / "sub" / "ä file.txt").read_text()
    finally:
        repository.ask("worktree", "remove", "--force", "--force", str(place))
    return {
        "commits": (head, first, repository.commit("no such"), repository.commit("main")),
        "order": repository.in_order(reversed(names)),
        "subjects": repository.subjects([*names, "0" * 40]),
        "distance": (repository.distance(*names), repository.after(*names), repository.after(*reversed(names))),
        "worktree": (listed, content, place.exists()),
        "prefix": repository.run("rev-parse", "--show-prefix"),
        "changed": tuple(changed(repository)),
    }


def changed(repository):
    """Whether a file is changed, and the commit as the collector writes it; of an unchanged and of a changed one."""
    for text in ("repository", "changed"):
        (repository.folder / "ä file.txt").write_text(text)
        yield repository.is_changed, git_commit(str(repository.folder / "train.py"))


@pytest.fixture(scope="module")
def expected(places):
    """The answers where nothing is configured."""
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patched.delenv(name)
        patched.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        found = answers(Repository(places / "repository" / "sub"))
    head = found["commits"][0].name
    assert found["subjects"][head] == SUBJECT
    assert found["changed"] == ((False, head), (True, f"{head}+changes"))
    return found


@pytest.mark.parametrize("row", [*CONFIGURATION, *ENVIRONMENT], ids=lambda row: next(iter(row)))
def test_git_answers_the_same_whatever_is_configured(places, expected, monkeypatch, row):
    values = {
        key: value.format(program=places / "program", hooks=places / "hooks", other=places / "other")
        for key, value in row.items()
    }
    (places / "mark").unlink(missing_ok=True)
    configured = places / "gitconfig"
    configured.write_text("")
    for key, value in values.items():
        if row in ENVIRONMENT:
            monkeypatch.setenv(key, value)
        else:
            git(places, "config", "--file", str(configured), key, value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configured))
    assert answers(Repository(places / "repository" / "sub")) == expected
    assert not (places / "mark").exists()


def test_every_variable_that_git_calls_local_to_a_repository_is_known():
    local = set(git(Path.cwd(), "rev-parse", "--local-env-vars").split())
    assert {name for name in local if not name.startswith("GIT_CONFIG")} <= ELSEWHERE
