"""The GitHub Action: the steps of ``action.yml`` in its order, on the sample traces; a local server is GitHub's API."""

import json
import os
import re
import shutil
import xml.etree.ElementTree as xml
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from action_runner import ACTION, ROOT, Runner
from inert_markdown import parsed

import tracediff

pytestmark = pytest.mark.slow
EXACT = "--assume-run-cv 0.5% --max-regression"
"""From compile to eager, the profiled step grows by 10.7 % in the large sample and by 2.8 % in the small one."""
RESULTS = ["check.json", "comment.md", "junit.xml", "new.tdprof.gz", "report.html"]
PULL = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "faster"}


class Api(ThreadingHTTPServer):
    """The part of GitHub's REST API that comments need; ``refuses`` is a status for every write."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments, self.calls, self.refuses = [], [], None


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        page = int(parse_qs(urlsplit(self.path).query)["page"][0])
        self.answer(200, self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self):
        self.write(lambda text: self.server.comments.append(comment(len(self.server.comments) + 1, text)))

    def do_PATCH(self):
        number = int(self.path.rsplit("/", 1)[1])
        self.write(lambda text: self.server.comments[number - 1].update(body=text))

    def write(self, change):
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.server.calls.append((self.command, self.path, self.headers["Authorization"]))
        if self.server.refuses is None:
            change(text)
        self.answer(self.server.refuses or 201, {})

    def answer(self, status, document):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_):
        pass


def comment(number, body, author="Bot"):
    return {"id": number, "body": body, "user": {"type": author}}


@contextmanager
def serving():
    server = Api()
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def api():
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """The samples without the steps that were timed without the profiler."""
    folder = tmp_path_factory.mktemp("samples")
    for name in ("vit", "graph-breaks"):
        shutil.copytree(ROOT / "sample_traces" / name, folder / name)
    for path in folder.rglob("manifest.json"):
        manifest = json.loads(path.read_text())
        manifest["runs"] = [run | {"unprofiled_steps": []} for run in manifest["runs"]]
        path.write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="module")
def sets(tmp_path_factory, samples):
    """Snapshots of the small sample, which are read faster than its traces."""
    folder = tmp_path_factory.mktemp("sets")
    for name in ("eager", "compile"):
        tracediff.snapshot(samples / "graph-breaks" / name, folder / f"{name}.tdprof.gz")
    return {path.name.partition(".")[0]: str(path) for path in folder.iterdir()}


@pytest.fixture
def main(runner, sets):
    """The runner with what a run on the branch main keeps."""
    runner.caches["tracediff/step/Linux-X64/main/1000-1"] = Path(sets["compile"]).read_bytes()
    return runner


@pytest.fixture
def runner(tmp_path):
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    workspace.mkdir()
    temporary.mkdir()
    return Runner(workspace, temporary)


@pytest.fixture
def pull(runner, api, sets, tmp_path):
    """A function that runs the action for a pull request."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "fedcba9876543210"}}}))
    github = {**PULL, "GITHUB_API_URL": f"http://127.0.0.1:{api.server_port}"}
    return lambda **inputs: runner.run(github | inputs.pop("github", {}), event, **{"traces": sets["eager"], **inputs})


def test_a_branch_keeps_its_baseline_and_a_pull_request_is_compared_with_it(runner, pull, api, samples):
    kept = runner.run(traces=str(samples / "vit" / "compile"))
    assert (kept.code, kept.outputs["result"], kept.artefact) == (0, "recorded", ["base.tdprof.gz"])
    assert [*runner.caches] == ["tracediff/step/Linux-X64/main/1001-1"]

    run = pull(traces=str(samples / "vit" / "eager"), limits=f"{EXACT} 1%")
    assert (run.code, run.outputs["result"]) == (1, "regression")
    assert run.steps[-1] == "Pass or fail"
    assert run.artefact == sorted(["base.tdprof.gz", *RESULTS])
    folder = runner.workspace / run.outputs["folder"]
    assert run.summary == (folder / "comment.md").read_text()
    assert api.comments[0]["body"] == f"<!-- tracediff: step -->\n{run.summary}"
    assert "main 0123456 → faster `fedcba9`" in run.summary  # GitHub links no commit in code
    assert re.search(r"^\| op: gemm \|.*█", run.summary, re.MULTILINE)
    assert xml.parse(folder / "junit.xml").getroot().get("failures") == "1"
    assert "::error title=tracediff%3A regression of step::" in run.log
    assert len(runner.caches) == 1

    again = pull(traces=str(samples / "vit" / "eager"), limits=f"{EXACT} 20%")
    assert (again.code, again.outputs["result"], len(api.comments)) == (0, "pass", 1)
    assert api.comments[0]["body"].endswith(again.summary)
    assert [(method, path) for method, path, _ in api.calls] == [
        ("POST", "/repos/someone/model/issues/7/comments"),
        ("PATCH", "/repos/someone/model/issues/comments/1"),
    ]
    assert {token for *_, token in api.calls} == {"Bearer a-token"}


@pytest.mark.usefixtures("main")
def test_too_few_runs_are_inconclusive_and_no_pass(pull):
    run = pull()
    assert (run.code, run.outputs["result"]) == (3, "inconclusive")


@pytest.mark.usefixtures("main")
def test_an_accepted_result_does_not_fail_and_stays_what_it_is(pull):
    run = pull(accept="not-comparable, inconclusive")
    assert (run.code, run.outputs["result"]) == (0, "inconclusive")
    regression = pull(accept="inconclusive", limits=f"{EXACT} 1%")
    assert (regression.code, regression.outputs["result"]) == (1, "regression")


def test_without_a_baseline_nothing_is_compared_and_a_warning_says_so(runner, sets, pull, api):
    runner.run({"GITHUB_REF_NAME": "main-2"}, traces=sets["compile"])  # another branch, whose name begins alike
    run = pull()
    assert (run.code, run.outputs["result"]) == (0, "no-baseline")
    assert "::warning title=tracediff::nothing was compared: main has no baseline yet" in run.log
    assert "no baseline" in api.comments[0]["body"]
    assert run.artefact == ["comment.md", "new.tdprof.gz"]


def test_a_baseline_in_the_repository(main, sets, pull):
    (main.workspace / "perf.tdprof.gz").write_bytes(main.caches.popitem()[1])
    assert pull(baseline="perf.tdprof.gz", limits=f"{EXACT} 1%").code == 1
    pushed = main.run(traces=sets["eager"], baseline="perf.tdprof.gz", limits=f"{EXACT} 20%")
    assert (pushed.code, pushed.outputs["result"], main.caches) == (0, "pass", {})


def test_the_newest_baseline_is_taken(main, sets, pull):
    main.run(traces=sets["eager"])
    run = pull(limits=f"{EXACT} 1%")
    assert (run.code, run.outputs["result"]) == (0, "pass")


@pytest.mark.usefixtures("main")
def test_a_merge_queue_is_compared_with_its_base(main, sets, tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"merge_group": {"base_ref": "refs/heads/main"}}))
    github = {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF_NAME": "gh-readonly-queue/main/pr-7"}
    assert main.run(github, event, traces=sets["eager"], limits=f"{EXACT} 1%").code == 1


def test_the_comment_is_found_on_any_page_and_only_if_a_bot_wrote_it(pull, api):
    marked = "<!-- tracediff: step -->\nold"
    api.comments = [comment(1, marked, author="User"), {"id": 2, "body": None, "user": None}]
    api.comments += [comment(number, "hello", author="User") for number in range(3, 205)]
    api.comments += [comment(205, "<!-- tracediff: step-2 -->\nanother gate"), comment(206, marked)]
    run = pull()
    assert [path.rsplit("/", 1)[1] for _, path, _ in api.calls] == ["206"]
    assert api.comments[205]["body"].endswith(run.summary)


@pytest.mark.usefixtures("main")
@pytest.mark.parametrize(("status", "level"), [(403, "notice"), (404, "notice"), (502, "warning")])
def test_a_comment_that_github_refuses_fails_nothing(pull, api, status, level):
    api.refuses = status
    run = pull(limits=f"{EXACT} 20%")
    assert (run.code, run.outputs["result"]) == (0, "pass")
    assert re.search(rf"^::{level} title=tracediff::no comment: .*HTTP {status}", run.log, re.MULTILINE)


@pytest.mark.usefixtures("main")
def test_an_api_that_does_not_answer_fails_nothing(pull):
    run = pull(limits=f"{EXACT} 20%", github={"GITHUB_API_URL": "http://127.0.0.1:9"})
    assert run.code == 0
    assert "::warning title=tracediff::no comment: " in run.log


def test_no_comment_on_request(pull, api):
    assert pull(comment="false", limits=f"{EXACT} 20%").code == 0
    assert api.calls == []


@pytest.mark.usefixtures("main")
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"traces": ""}, "give either traces or collect"),
        ({"collect": "--workload mlp"}, "give either traces or collect"),
        ({"name": "a --> b"}, "name 'a --> b': not a name"),
        ({"baseline": "none.tdprof.gz"}, "none.tdprof.gz: no such file"),
        ({"traces": "missing"}, "missing: "),
        ({"limits": "--max-regression much"}, "--max-regression"),
        ({"accept": "regression"}, "accept 'regression': not a list of inconclusive and not-comparable"),
    ],
)
def test_wrong_inputs_are_errors(pull, inputs, message):
    run = pull(**inputs)
    assert (run.code, run.outputs["result"]) == (2, "")
    assert message in run.log


def test_recording_is_refused_beside_a_token_that_can_write(pull):
    run = pull(traces="", collect="--workload mlp", github={"GITHUB_EVENT_NAME": "pull_request_target"})
    assert (run.code, "use the event pull_request" in run.log) == (2, True)


def test_names_of_a_stranger_are_data(runner, sets, pull, tmp_path):
    """A branch's name that is a command, markup and an output; a folder in the checkout that shadows the package."""
    evil = "$(touch${IFS}owned)`touch owned`,<b>@someone\nresult=pass"
    (runner.workspace / "tracediff").mkdir()
    (runner.workspace / "tracediff" / "__init__.py").write_text("open('owned', 'w')")
    run = pull(github={"GITHUB_HEAD_REF": evil, "GITHUB_BASE_REF": evil})
    assert run.outputs["result"] == "no-baseline"
    kept = runner.run({"GITHUB_REF_NAME": evil.replace("\n", "")}, traces=sets["eager"])
    assert kept.code == 0
    assert any("<b>@someone" in text for text in parsed(run.summary))
    assert [path.name for path in tmp_path.rglob("owned")] == []


@pytest.mark.parametrize("link", [".tracediff", ".tracediff/step", ".tracediff/.gitignore"])
@pytest.mark.parametrize("target", ["folder", "file"])
def test_nothing_is_removed_or_written_through_a_link_in_the_checkout(runner, sets, tmp_path, link, target):
    for victim in (runner.workspace / "victim", tmp_path / "outside"):
        (victim / "folder" / "step").mkdir(parents=True)
        (victim / "folder" / "step" / "kept").write_text("kept")
        (victim / "file").write_text("kept")
        path = runner.workspace / link
        shutil.rmtree(runner.workspace / ".tracediff", ignore_errors=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(os.path.relpath(victim / target, path.parent))
        run = runner.run(traces=sets["eager"])
        assert (run.code, run.steps[-1]) == (2, "Decide what to compare with")
        assert f"::error title=tracediff::{link}: a link" in run.log
        assert sorted(found.read_text() for found in victim.rglob("*") if found.is_file()) == ["kept", "kept"]
        path.unlink()


def test_links_inside_the_folder_that_is_cleared_are_removed_themselves(runner, sets):
    victim, folder = runner.workspace / "victim", runner.workspace / ".tracediff" / "step"
    victim.mkdir()
    (victim / "kept").write_text("kept")
    folder.mkdir(parents=True)
    (folder / "base.tdprof.gz").symlink_to(victim / "kept")
    (folder / "traces").symlink_to(victim)
    assert runner.run(traces=sets["eager"]).code == 0
    assert [path.read_text() for path in victim.iterdir()] == ["kept"]


@pytest.mark.parametrize("path", [".tracediff", ".tracediff/step"])
def test_a_file_in_place_of_the_folder_is_an_error(runner, sets, path):
    (runner.workspace / path).parent.mkdir(exist_ok=True)
    (runner.workspace / path).write_text("kept")
    run = runner.run(traces=sets["eager"])
    assert (run.code, f"{path}: a link, or no folder" in run.log) == (2, True)


def test_no_expression_stands_in_a_script():
    """GitHub inserts expressions into scripts as text, so that an input could end a quotation and begin a command."""
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert scripts
    assert [script for script in scripts if "${{" in script] == []


def test_the_documented_workflow_and_inputs_are_those_of_the_action():
    page = (ROOT / "docs" / "ci.md").read_text()
    workflow = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    (used,) = (step for step in workflow["jobs"]["step-time"]["steps"] if "tracediff" in step.get("uses", ""))
    assert used["with"].keys() <= ACTION["inputs"].keys()
    table = page.partition("| input |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` ", table, re.MULTILINE) == [*ACTION["inputs"]]


@pytest.mark.torch
def test_recording(runner):
    collect = "--workload mlp --size tiny --variant eager --repeats 1 --attempts 1 --warmup 1 --active 2"
    run = runner.run(traces="", collect=collect)
    assert (run.code, run.artefact) == (0, ["base.tdprof.gz"]), run.log
    both = runner.run(traces="", collect=f"{collect} --variant amp")
    assert (both.code, "2 variants were recorded (amp, eager)" in both.log) == (2, True)
