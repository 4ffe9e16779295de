"""``tracediff history bisect`` on repositories with planted changes, on machines of which some are loaded."""

import json
import signal
import subprocess
import sys
from contextlib import nullcontext
from io import StringIO

import pytest
from build_trace import document, op, step, write
from click.testing import CliRunner
from history_repository import MACHINE, RepositoryOfModels, write_set
from interrupts import heed_interrupts, wait_until
from rich.console import Console
from tracediff_cli.group import cli

import tracediff
from tracediff.git import Repository
from tracediff.history.bisect import Bisected, Bisection
from tracediff.history.evidence import BAD, GOOD, Decision
from tracediff.report.history import show_bisected

FAST, SLOW = (100, 0), (190, 0)
"""Commits: the gemm's time in µs, and the number of added operators."""
LOADED = (1, 1.5, 0.8, 1.3)
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(
        cli, [str(a) for a in arguments], standalone_mode=False
    )


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Makes a repository of these commits, and a history with an entry of the first, which was recorded under load."""

    def make(*commits):
        models = RepositoryOfModels(tmp_path / "repository")
        for k, (gemm_us, added) in enumerate(commits):
            models.commit(gemm_us, f"Change number {k}", added)
        entry = write_set(tmp_path / "entry", 100, load=1.5)
        monkeypatch.chdir(models.folder)
        names = ("--commit", models.commits[0], *MACHINE)
        assert invoke("history", "add", entry, "-o", tmp_path / "history", *names).return_value == 0
        return models

    return make


def bisect(models, *options, command=None):
    place = models.folder.parent / "history"
    ends = ("--good", models.commits[0], "--bad", "main")
    return invoke("history", "bisect", place, *ends, *options, "--", *(command or models.record()))


def decisions(models, result):
    """Number of the commit → the word that its line begins with, and what that rests on."""
    lines = [line.partition(" ") for line in result.stderr.splitlines()]
    numbers = {commit[:9]: k for k, commit in enumerate(models.commits)}
    decided = {numbers[commit]: why.partition(": ") for commit, _, why in lines if not why.startswith(("now", "("))}
    return {k: (word, why) for k, (word, _, why) in decided.items()}


def is_untouched(models):
    """Whether the user's worktree is as it was, and the only one."""
    return (
        models.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
        and models.git("rev-parse", "HEAD").strip() == models.commits[-1]
        and len(models.git("worktree", "list").splitlines()) == 1
        and not (models.folder / ".git" / "BISECT_LOG").exists()
    )


@pytest.mark.slow
def test_step_times_of_recordings_beside_each_other_find_the_commit(plant):
    """The entry of the good commit is slower than the bad one is now, and the load of the machine drifts."""
    models = plant(*[FAST] * 5, *[SLOW] * 4)
    (models.folder / "model.txt").write_text("edited")
    result = bisect(models, command=models.record(loads=(1, 1.002, 1.004)))
    assert result.return_value == 0, result.output
    assert result.stdout.startswith(f"first bad commit: {models.commits[5]} Change number 5\n")
    assert "against the commit before it: +" in result.stdout
    assert "aten::mm (gemm): " in result.stdout
    decided = decisions(models, result)
    assert {k: word for k, (word, _) in decided.items()} == {k: "good" if k < 5 else "bad" for k in decided}
    assert all("95 % interval" in why and "limit +" in why for _, why in decided.values())
    assert "now against its entry: −33 %" in result.stderr
    assert is_untouched(models)
    assert (models.folder / "model.txt").read_text() == "edited"


@pytest.mark.slow
def test_counts_find_the_commit_on_a_contended_machine(plant):
    models = plant((100, 0), (100, 0), (100, 154), (100, 154), (100, 154))
    result = bisect(models, command=models.record(LOADED, contended=True))
    assert result.return_value == 0, result.output
    assert result.stdout.startswith(f"first bad commit: {models.commits[2]} Change number 2\n")
    assert "other counts per step: aten::mul 0 → 154" in " ".join(result.stdout.split())
    assert "the machine is contended: other processes disturbed 2 of 2 rounds" in result.stderr
    why = {k: (word, why.partition(":")[0].partition(";")[0]) for k, (word, why) in decisions(models, result).items()}
    assert why == {
        2: ("bad", "the counts per step are those of bad"),
        1: ("good", "the counts per step are those of good"),
    }


def test_what_got_faster_does_not_explain_a_bad_commit(tmp_path):
    for side, (us, mm, add) in {"good": (100, 60, 5), "bad": (90, 20, 40)}.items():
        events = [step(1, 0, us), op("aten::mm", 0, mm), op("aten::add", mm, add)]
        write(tmp_path / side / "trace.json", document(events))
    compared = tracediff.compare(tmp_path / "good", tmp_path / "bad").comparison
    screen = StringIO()
    show_bisected(Bisected(("1a2b3c",), "", "+14 %", compared), {}, Console(file=screen, width=100))
    assert "aten::add" in screen.getvalue()
    assert "aten::mm" not in screen.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loads", "contended", "reason"),
    [
        (LOADED, True, "the machine is contended: other processes disturbed 5 of 5 rounds"),
        (LOADED, False, "step times do not tell bad from good: "),
        ((1,), False, "does the command import an installed package?"),
    ],
)
def test_commits_that_change_only_text_are_not_blamed(plant, loads, contended, reason):
    models = plant(*[FAST] * 4)
    result = bisect(models, command=models.record(loads, contended))
    assert result.return_value == 3, result.output
    assert result.stdout.startswith("inconclusive: ")
    assert reason in " ".join(result.stdout.split())
    assert "one of these" in result.stdout
    assert all(commit in result.stdout for commit in models.commits[1:])


@pytest.mark.slow
def test_counts_that_do_not_make_the_step_slower_do_not_decide(plant):
    models = plant((100, 0), (100, 1), (100, 1), (190, 1), (190, 1))
    result = bisect(models)
    assert result.return_value == 0, result.output
    assert result.stdout.startswith(f"first bad commit: {models.commits[3]} ")
    assert "aten::mul 0 → 1; these take 1" in result.stderr
    assert ": step times decide" in result.stderr


@pytest.mark.slow
def test_a_commit_between_good_and_bad_is_inconclusive(plant):
    models = plant((100, 0), (145, 0), (190, 0))
    result = bisect(models)
    assert result.return_value == 3, result.output
    assert result.stdout.startswith(f"inconclusive: {models.commits[1][:9]}: agrees with neither good nor bad")
    assert decisions(models, result)[1][0] == "inconclusive"


@pytest.mark.slow
@pytest.mark.parametrize("first_bad", range(1, 40))
@pytest.mark.parametrize(("suspects", "most"), [((), 6), ((17,), 8), ((17, 30), 10), ((17, 2, 30, 5), 10)])
def test_suspects_are_tried_first_and_mislead_nothing(monkeypatch, tmp_path, first_bad, suspects, most):
    commits = [f"{k:040x}" for k in range(40)]
    monkeypatch.setattr(Bisection, "_worktree", lambda _, commit: nullcontext(tmp_path / commit))
    bisection = Bisection(Repository(tmp_path), None, (), tmp_path, "")
    tried = []

    def decide(worktree):
        tried.append(commits.index(worktree.name))
        return Decision(BAD if tried[-1] >= first_bad else GOOD, "")

    low, high, reason = bisection._search(commits, suspects, decide)
    assert (low, high, reason) == (first_bad - 1, first_bad, "")
    assert len(tried) <= most
    if first_bad in suspects[:1]:
        assert tried == [first_bad - 1, first_bad]


def test_commits_that_cannot_be_recorded_are_skipped(plant):
    models = plant(FAST, FAST, (-1, 0), (-1, 0), SLOW, SLOW)
    result = bisect(models)
    assert result.return_value == 3, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()[2:]] == models.commits[2:5]
    assert decisions(models, result)[2] == (
        "skipped",
        f"in {models.commits[2][:9]} the command failed with exit code 1 (no such model)  Change number 2",
    )


def test_bisect_refuses_what_it_cannot_judge(plant):
    models = plant(FAST, SLOW)
    place, good = models.folder.parent / "history", models.commits[0]

    def error(*arguments, good=good, bad="main"):
        return str(invoke("history", "bisect", place, "--good", good, "--bad", bad, "--", *arguments).exception)

    assert error("record") == "CMD: does not name {out}; write the folder of the set as {out}: -o {out}"
    assert "--good: 'v9' is not a commit" in error("{out}", good="v9")
    assert "--good: the history has no entry of 'main'" in error("{out}", good="main")
    assert error("{out}", bad=good) == f"--bad: '{good}' is not after '{good}'; exchange them"
    assert "the command failed with exit code 127 (nothing: No such file or directory)" in error("nothing", "{out}")
    assert is_untouched(models)


@pytest.mark.slow
def test_a_command_that_records_another_program_is_refused(plant):
    models = plant(FAST, SLOW)
    copies = f"mkdir -p $0/run1 $0/run2; for k in 1 2; do cp {models.folder}/other.json $0/run$k/rank0.json; done"
    other = write_set(models.folder.parent / "other", 100, runs=1)
    trace = json.loads(next(other.rglob("*.json")).read_text())
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event["cat"] != "kernel"]
    (models.folder / "other.json").write_text(json.dumps(trace))
    result = bisect(models, command=["sh", "-c", copies, "{out}"])
    assert "CMD: does not record what the entry of --good is of (one-side-no-gpu" in str(result.exception)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_bisection_ends_its_processes_and_leaves_the_worktree_alone(plant, tmp_path, monkeypatch, ending):
    models, pids, temporary = plant(FAST, SLOW), tmp_path / "pids", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    records = f"sleep 600 & echo $! $$ > {pids}; wait; echo {{out}}"
    command = ("history", "bisect", tmp_path / "history", "--good", models.commits[0], "--bad", "main", "--")
    process = subprocess.Popen(
        models.command(*command, "sh", "-c", records),
        cwd=models.folder,
        env=models.environment(),
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "the recording")
    (models.folder / "model.txt").write_text("edited")
    process.send_signal(ending)
    said = process.communicate()[1].decode()
    assert process.returncode == (-ending if ending == signal.SIGKILL else 128 + ending), said
    wait_until(lambda: not any(map(runs, pids.read_text().split())), "end of the recording")
    assert (models.folder / "model.txt").read_text() == "edited"
    if ending == signal.SIGKILL:
        assert not is_untouched(models)
        assert "exit code 1" in models.run(*command, "sh", "-c", "exit 1; {out}").stderr
    assert is_untouched(models)
    assert list(temporary.iterdir()) == []
    assert (models.folder / "model.txt").read_text() == "edited"


def runs(process):
    """Whether the process of this id runs."""
    try:
        with open(f"/proc/{process}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
