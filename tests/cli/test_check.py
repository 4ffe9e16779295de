"""`tracediff check` on sets of several runs with known times, as CI runs it."""

import json
import random
import re
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from build_trace import call, document, kernel, op, step, write
from click.testing import CliRunner
from inert_markdown import parsed
from tracediff_cli.group import cli

from tracediff.diff.gate.limits import STOPPING
from tracediff.errors import TracediffError

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "vit"
EAGER, COMPILED = str(SAMPLE / "eager"), str(SAMPLE / "compile")
STEPS = 4
PERIOD, GEMM, COPY = 10_000, 2_000, 500
"""µs of a step and of its two kernels."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*args, width=100):
    return CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(
        cli, ["check", *map(str, args)], catch_exceptions=False, standalone_mode=False
    )


def one_run(factor, gemm, products, copies, name, dims):
    """Steps one after another, each with some GEMMs and copies; ``factor`` stretches all of it."""
    events = []
    for n in range(STEPS):
        step_start, number = n * PERIOD * factor, 100 * n
        events += [step(n + 1, step_start, PERIOD * factor)]
        kernels = [*[("aten::mm", "sgemm_128", gemm)] * products, *[("aten::copy_", name, COPY)] * copies]
        for k, (operator, called, us) in enumerate(kernels):
            start, correlation = step_start + (200 + 2500 * k) * factor, number + k + 1
            shapes = {"Input Dims": dims}
            events += [
                op(operator, start, 100 * factor, **shapes),
                call("cudaLaunchKernel", start + 10, 20, correlation=correlation),
            ]
            events += [kernel(called, start + 200 * factor, us * factor, correlation=correlation)]
    return document(events, deviceProperties=[{"id": 0, "name": "H100"}])


def trace_set(
    folder,
    runs=5,
    slower=1.0,
    gemm=GEMM,
    products=1,
    copies=1,
    sd=0.005,
    seed=0,
    name="copy_kernel",
    dims=((64, 64), (64, 64)),
    gpu="H100",
):
    """A set whose runs differ by ``sd``."""
    spread = random.Random(seed)
    for k in range(1, runs + 1):
        trace = one_run(slower * (1 + spread.gauss(0, sd)), gemm, products, copies, name, [list(d) for d in dims])
        trace["deviceProperties"][0]["name"] = gpu
        write(folder / f"run{k}" / "rank0.json", trace, layout="compact")
    return folder


def found(*args):
    result = run(*args, "--json", "-")
    out = json.loads(result.stdout)
    assert out["exit_code"] == result.return_value
    return out


def results(out):
    return {line["subject"]: line["result"] for line in out["limits"]}


@pytest.fixture
def base(tmp_path):
    return trace_set(tmp_path / "base", seed=1)


@pytest.mark.parametrize(
    ("slower", "options", "code"),
    [
        (1.0, [], 0),
        (1.10, [], 1),
        (0.9, [], 0),
        (1.05, [], 3),
        (1.10, ["--max-regression", "20%"], 0),
        (1.10, ["--max-regression", "3%,2ms"], 0),
        (1.10, ["--max-regression", "3%,50us"], 1),
        (1.10, ["--max-regression", "10%"], 3),
        (1.02, ["--max-regression", "0%"], 1),
    ],
)
def test_the_step_is_judged_on_its_interval(tmp_path, base, slower, options, code):
    out = found(base, trace_set(tmp_path / "new", slower=slower, seed=2), *options)
    assert out["exit_code"] == code
    assert out["schema"] == "tracediff.check/1"
    line = out["limits"][0]
    assert line["ratio"] == pytest.approx(slower, rel=0.01)
    assert line["interval"][0] < line["ratio"] - 1 < line["interval"][1]


@pytest.mark.slow
def test_added_work_is_a_regression_and_missing_or_reshaped_work_is_not_judged(tmp_path, base):
    new = trace_set(tmp_path / "new", products=3, slower=1.2, seed=2)
    out = found(base, new)
    assert (out["result"], out["exit_code"]) == ("regression", 1)
    back = found(new, base)
    assert (back["result"], back["exit_code"]) == ("not-comparable", 3)
    assert back["comparability"]["stopping"] == ["missing-work"]
    assert found(new, base, "--allow", "missing-work")["exit_code"] == 0
    reshaped = trace_set(tmp_path / "reshaped", dims=((64, 96), (96, 64)), slower=1.2, seed=2)
    assert found(base, reshaped)["comparability"]["stopping"] == ["workload"]


def test_an_open_limit_says_what_would_settle_it(tmp_path):
    a, b = trace_set(tmp_path / "a", sd=0.03, runs=3, seed=3), trace_set(tmp_path / "b", sd=0.03, runs=3, seed=4)
    line = found(a, b, "--max-regression", "3%")["limits"][0]
    assert line["result"] == "inconclusive"
    assert line["settle"].endswith("runs per side would detect 3 %")
    assert 5 <= int(line["settle"].split()[0]) <= 100
    text = run(a, b, "--max-regression", "3%").stdout
    assert line["settle"] in " ".join(text.split())


@pytest.mark.slow
def test_a_median_that_is_the_mean_is_given_once_and_so_is_a_unit(tmp_path, base):
    new = trace_set(tmp_path / "new", slower=1.1, seed=2)
    line = found(base, new)["limits"][0]
    assert line["subject"] == "step"
    assert re.match(r"median [\d.]+ → [\d.]+ ms, \+\d+\.\d % \(95 %", line["explanation"])
    text = run(base, new, width=160).stdout
    assert re.search(r"longer per step: [\d.]+ → [\d.]+ ms$", text, re.MULTILINE)
    assert re.search(r"^  step \(median\)  ", text, re.MULTILINE)
    assert "| step (median) |" in run(base, new, "--markdown", "-").stdout
    counted = found(base, new, "--limit", "kernels=0", "--limit", "op:sgemm*=0%")["limits"]
    assert [line["explanation"].startswith("median") for line in counted] == [True, False, False]


def test_states_families_ops_and_kernels(tmp_path, base):
    new = trace_set(tmp_path / "new", gemm=int(GEMM * 1.3), copies=2, seed=2)
    limits = [
        "state:gpu_compute=10%",
        "family:gemm=20%,100us",
        "family:copy=5%",
        "op:sgemm*=20%",
        "op:aten::mm=50%",
        "kernels=0",
        "state:data_loading=0",
    ]
    out = found(base, new, *[x for limit in limits for x in ("--limit", limit)])
    assert results(out) == {
        "step": "pass",
        "state:gpu_compute": "regression",
        "family:gemm": "regression",
        "family:copy": "regression",
        "op:sgemm_128": "regression",
        "op:aten::mm": "pass",
        "kernels": "regression",
        "state:data_loading": "pass",
    }
    explained = {limit["subject"]: limit["explanation"] for limit in out["limits"]}
    assert explained["op:aten::mm"].startswith("host self time ")  # its kernel got slower
    assert "self time" not in explained["op:sgemm_128"]
    kernels = next(line for line in out["limits"] if line["subject"] == "kernels")
    assert (kernels["control"], kernels["test"], kernels["change"], kernels["unit"]) == (2, 3, 1, "count")
    back = found(new, base, *[x for limit in limits for x in ("--limit", limit)])
    assert back["exit_code"] == 0


def test_the_gpu_work_below_operators(tmp_path, base):
    new = trace_set(tmp_path / "new", gemm=int(GEMM * 1.3), copies=2, seed=2)
    limits = ("--limit", "op:aten::mm=10%", "--limit", "gpu-below:aten::mm=10%", "--limit", "gpu-below:*copy*=50%")
    out = found(base, new, *limits)
    regressed = {"op:aten::mm": "pass", "gpu-below:aten::mm": "regression", "gpu-below:aten::copy_": "regression"}
    assert results(out) == {"step": "pass"} | regressed
    of_mm = next(limit for limit in out["limits"] if limit["subject"] == "gpu-below:aten::mm")
    assert of_mm["control"] == pytest.approx(GEMM, rel=0.02)
    assert of_mm["ratio"] == pytest.approx(1.3, abs=0.02)
    assert of_mm["interval"][0] < 0.3 < of_mm["interval"][1] < 0.4
    assert set(results(found(new, base, *limits)).values()) == {"pass"}


def test_the_gpu_work_below_an_operator_that_only_one_side_has_is_judged_exactly(tmp_path, base):
    without = trace_set(tmp_path / "without", copies=0, seed=2)
    limit = ("--limit", "gpu-below:aten::copy_=0%", "--allow", "missing-work")
    assert results(found(without, base, *limit))["gpu-below:aten::copy_"] == "regression"
    assert results(found(base, without, *limit))["gpu-below:aten::copy_"] == "pass"


def test_ops_that_only_one_side_has(tmp_path, base):
    new = trace_set(tmp_path / "new", name="other_copy", seed=2)
    out = found(base, new, "--limit", "op:*copy*=0%,0us")
    assert results(out)["op:other_copy"] == "regression"
    assert results(out)["op:copy_kernel"] == "pass"
    assert results(found(base, new, "--limit", "op:other_copy=0%"))["op:other_copy"] == "regression"
    assert results(found(base, new, "--limit", "op:copy_kernel=0%"))["op:copy_kernel"] == "pass"


@pytest.mark.parametrize(
    ("subject", "nearest"),
    [
        ("op:aten::mmm", "aten::mm"),
        ("op:aten::COPY", "aten::copy_"),
        ("op:gemm", "sgemm_128"),
        ("op:cpy", "aten::copy_"),
        ("op:*nothing*", "sgemm_128"),
        ("gpu-below:aten::mmm", "aten::mm"),
        ("gpu-below:sgemm_128", "aten::mm"),
        ("family:gemn", "gemm"),
        ("family:conv", "gemm"),
        ("state:gpu_comput", "gpu_compute"),
        ("state:op:gemm", "gpu_compute"),
        ("famly:gemm", "family"),
    ],
)
def test_a_limit_that_matches_nothing_is_an_error_that_suggests_what_there_is(tmp_path, base, subject, nearest):
    with pytest.raises(TracediffError, match=f"limit on .*; (did you mean|there are).*{nearest}") as error:
        run(base, base, "--limit", f"{subject}=5%")
    (tmp_path / "tracediff.toml").write_text(f'[[check.limit]]\nsubject = "{subject}"\nrelative = "5%"\n')
    with pytest.raises(TracediffError) as same:
        run(base, base)
    assert str(same.value) in (str(error.value), f"tracediff.toml, limit 1, {error.value}")


def test_a_limit_without_a_near_name_says_what_patterns_match(base):
    with pytest.raises(TracediffError, match=r"; a pattern matches whole names, as 'op:\*gemm\*' does; there are "):
        run(base, base, "--limit", "op:nosuch=3%")


def test_help_lists_what_can_be_allowed_and_a_whole_example():
    text = " ".join(run("--help", width=80).stdout.split()).replace("- ", "-")  # a name may be broken at its hyphen
    assert f"Judge in spite of this caution (repeatable): {', '.join(STOPPING)}." in text
    example = text.partition("Example ")[2].partition("Limits:")[0]
    for part in ("collect", "snapshot", "check", "--max-regression", "--limit family:", "--limit 'op:", "--allow"):
        assert part in example


def test_two_runs_a_side_leave_parts_open_but_counts_are_exact(tmp_path):
    a, b = trace_set(tmp_path / "a", runs=2), trace_set(tmp_path / "b", runs=2, seed=5)
    out = found(a, b, "--max-regression", "50%", "--limit", "family:gemm=5%", "--limit", "kernels=0")
    assert results(out) == {"step": "pass", "family:gemm": "inconclusive", "kernels": "pass"}
    assert out["limits"][1]["settle"] == "record 5 runs per side"
    assert out["exit_code"] == 3


def test_equal_sets_pass_without_a_test(tmp_path):
    a, b = trace_set(tmp_path / "a", runs=2, sd=0), trace_set(tmp_path / "b", runs=2, sd=0)
    assert found(a, b, "--limit", "family:gemm=0%", "--limit", "kernels=0")["exit_code"] == 0


def test_a_single_run_needs_a_spread_that_is_vouched_for(tmp_path):
    a, b = trace_set(tmp_path / "a", runs=1, sd=0), trace_set(tmp_path / "b", runs=1, sd=0, slower=1.2)
    out = found(a, b)
    assert (out["result"], out["exit_code"], out["comparability"]["stopping"]) == ("inconclusive", 3, ["single-run"])
    assert found(a, b, "--assume-run-cv", "1%")["exit_code"] == 3
    assert found(a, b, "--allow", "single-run", "--assume-run-cv", "1%")["exit_code"] == 1


@pytest.mark.parametrize("runs", [1, 2])
def test_where_a_single_run_is_allowed_the_figures_alone_decide(tmp_path, runs):
    a, b = trace_set(tmp_path / "a", runs=runs, sd=0), trace_set(tmp_path / "b", runs=runs, sd=0, slower=1.2)
    limits = ("--limit", "family:gemm=5%", "--limit", "kernels=0", "--allow", "single-run")
    out = found(a, b, *limits)
    assert results(out) == {"step": "regression", "family:gemm": "regression", "kernels": "pass"}
    said = "decided by the figures alone (single-run is allowed): significance unknown"
    untested = ["step", "family:gemm"] if runs == 1 else ["family:gemm"]  # two runs have an interval of the step
    assert [line["subject"] for line in out["limits"] if line["why"] == said] == untested
    assert out["sentence"].endswith(f"; {len(untested)} {said}")
    back = found(b, a, *limits)
    assert (back["result"], back["exit_code"]) == ("pass", 0)
    assert found(a, a, "--allow", "single-run")["exit_code"] == 0
    alone = run(a, b, "--limit", "family:gemm=5%", "--limit", "memory=5%", "--allow", "single-run")
    assert "regression: 2 of 3 limits are exceeded" in alone.stdout
    assert found(a, a, "--limit", "memory=5%", "--allow", "single-run")["exit_code"] == 3  # its numbers are missing


def test_a_row_has_one_unit(tmp_path):
    a, b = trace_set(tmp_path / "a", runs=1, gemm=1_070), trace_set(tmp_path / "b", runs=1, gemm=481)
    options = ("--limit", "op:sgemm_128=5%", "--allow", "single-run")
    assert re.search(r"op:sgemm_128 +1,0\d\d µs +4\d\d µs +", run(a, b, *options).stdout)
    markdown = run(a, b, *options, "--markdown", "-").stdout
    assert re.search(r"\| 1,0\d\d µs \| 4\d\d µs \|", markdown)


def test_cautions_stop_the_check_unless_allowed(tmp_path, base):
    other = trace_set(tmp_path / "other", gpu="A100", slower=1.3, seed=2)
    out = found(base, other)
    assert (out["exit_code"], out["result"], out["comparability"]["stopping"]) == (3, "not-comparable", ["gpu"])
    assert results(out) == {"step": "inconclusive"}
    assert found(base, other, "--allow", "gpu")["exit_code"] == 1


def test_refused_sets_are_never_judged(tmp_path, base):
    events = [step(1, 0, 10), op("b", 1, 2)]
    for k in (1, 2, 3):
        write(tmp_path / "cpu" / f"run{k}" / "rank0.json", document(events))
    for options in ([], ["--force"]):
        out = found(base, tmp_path / "cpu", "--limit", "kernels=0", "--limit", "family:gemm=5%", *options)
        assert (out["exit_code"], set(results(out).values())) == (3, {"inconclusive"})


@pytest.mark.slow
def test_memory_and_graph_breaks_come_from_the_manifests(tmp_path):
    limits = ["--limit", "memory=2%,16MB", "--limit", "graph-breaks=0", "--max-regression", "200%"]
    out = found(EAGER, COMPILED, *limits)
    lines = {line["subject"]: line for line in out["limits"]}
    assert lines["memory"]["result"] == "regression"
    assert lines["memory"]["test"] == (501526528 + 458334208) / 2
    assert (lines["graph-breaks"]["result"], lines["graph-breaks"]["control"]) == ("inconclusive", None)
    assert "no manifest" in lines["graph-breaks"]["why"]
    assert results(found(COMPILED, COMPILED, *limits)) == {"step": "pass", "memory": "pass", "graph-breaks": "pass"}
    bare = trace_set(tmp_path / "a")
    assert results(found(bare, bare, *limits))["memory"] == "inconclusive"


@pytest.mark.slow
def test_a_snapshot_knows_the_memory_too(tmp_path):
    snapshot = tmp_path / "base.tdprof.gz"
    CliRunner().invoke(cli, ["snapshot", EAGER, "-o", str(snapshot)], catch_exceptions=False, standalone_mode=False)
    out, same = (found(control, COMPILED, "--limit", "memory=2%") for control in (snapshot, EAGER))
    assert out["limits"] == same["limits"]


TOML = """
[check]
max_regression = "3%"
[[check.limit]]
subject = "kernels"
relative = 0
[[check.limit]]
subject = "family:gemm"
relative = "200%"
[[check.waiver]]
pattern = "step"
reason = "the new <loss> costs & that is known"
expires = {}
"""


def test_the_file_sets_limits_and_waivers_and_the_command_line_wins(tmp_path, base):
    new = trace_set(tmp_path / "new", slower=1.1, seed=2)
    (tmp_path / "tracediff.toml").write_text(TOML.format("2999-12-31"))
    out = found(base, new)
    assert results(out) == {"step": "waived", "kernels": "pass", "family:gemm": "pass"}
    assert (out["result"], out["exit_code"], out["limits"][0]["waiver"]["expires"]) == ("pass", 0, "2999-12-31")
    assert results(found(base, new, "--limit", "family:gemm=1%"))["family:gemm"] == "regression"
    assert results(found(base, new, "--max-regression", "50%"))["step"] == "pass"
    (tmp_path / "old.toml").write_text(TOML.format("2020-01-01"))
    out = found(base, new, "--config", tmp_path / "old.toml")
    assert out["exit_code"] == 1
    assert "its waiver expired on 2020-01-01: the new <loss>" in out["limits"][0]["explanation"]


@pytest.mark.parametrize(
    "options",
    [
        ["--limit", "x=1%"],
        ["--allow", "torch"],
        ["--config", "none.toml"],
        ["--max-regression", "3"],
        ["--max-regression", "5%,5"],
    ],
)
def test_faults_are_errors(base, options):
    with pytest.raises(TracediffError):
        run(base, base, *options)


def test_every_output_at_once_with_names_that_attack(tmp_path, base):
    evil = "<script>alert(1)</script>|`x` & \x1b[31m\n::error::100%,gemm"
    new = trace_set(tmp_path / "new", name=evil, slower=1.1, seed=2)
    files = ["--json", tmp_path / "c.json", "--markdown", tmp_path / "c.md", "--junit", tmp_path / "c.xml"]
    result = run(base, new, *files, "--limit", "op:*=5%,100us", "--limit", "memory=1%", "--github")
    assert result.return_value == 1
    assert "\x1b" not in result.stdout
    markdown = (tmp_path / "c.md").read_text()
    assert any("<script>alert(1)</script>" in text for text in parsed(markdown))
    assert markdown.count("<details>") == markdown.count("</details>") == 2
    assert len(markdown) < 65_536
    suite = xml.parse(tmp_path / "c.xml").getroot()[0]
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    out = json.loads((tmp_path / "c.json").read_text())
    assert len(cases) == len(out["limits"]) == int(suite.get("tests"))
    assert cases["step"].find("failure").get("type") == "regression"
    assert cases["memory"].find("skipped") is not None
    assert int(suite.get("failures")) == len([line for line in out["limits"] if line["result"] == "regression"])
    commands = [line for line in result.stdout.splitlines() if line.startswith("::")]
    assert commands[0].startswith("::error title=tracediff%3A regression of step::")
    assert "%25" in commands[0]
    assert all(line.startswith(("::error title=", "::warning title=")) for line in commands)
    assert not [line for line in result.stdout.splitlines() if line.strip().startswith("::error::")]


def test_annotations_leave_a_document_on_standard_output_alone(base):
    result = run(base, base, "--json", "-", "--github")
    assert json.loads(result.stdout)["result"] == "pass"


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_is_not_overrun(tmp_path, base, width):
    new = trace_set(tmp_path / "new", slower=1.1, seed=2, name="a_kernel_with_a_copy_of_a_very_long_name" * 5)
    result = run(base, new, "--limit", "op:*=5%,100us", "--limit", "state:gpu_compute=5%,100us", width=width)
    assert max(map(len, result.stdout.splitlines())) <= width
    assert "regression: " in result.stdout


@pytest.mark.slow
def test_a_long_table_fits_a_comment(tmp_path):
    sets = []
    for side, factor in (("a", 1), ("b", 2)):
        events = []
        for start in (0, 200_000, 400_000):
            events += [
                step(start // 200_000 + 1, start, 190_000),
                *(op(f"{'|<>' * 60}{i}", start + i * 300, 100 * factor) for i in range(600)),
            ]
        for k in (1, 2, 3):
            write(tmp_path / side / f"run{k}" / "rank0.json", document(events), layout="compact")
        sets.append(tmp_path / side)
    result = run(*sets, "--limit", "op:*=5%", "--markdown", "-")
    assert result.return_value == 1
    assert len(result.stdout) < 65_536


def test_help_has_examples():
    text = run("--help").stdout
    assert "Example" in text
    assert "tracediff check" in text


def test_a_check_of_single_runs_says_once_that_nothing_was_decided(tmp_path):
    for side, us in (("a", 100), ("b", 80)):
        write(tmp_path / side / "t.json", document([step(1, 0, us), op("aten::mm", 1, 5)]))
    text = run(tmp_path / "a", tmp_path / "b").stdout
    assert "record 5 runs per side" in " ".join(text.split())
    assert (text.count("inconclusive"), text.count("not judged")) == (1, 1)  # the sentence and the row
    assert "not decided" not in text
    run(tmp_path / "a", tmp_path / "b", "--markdown", tmp_path / "check.md")
    markdown = (tmp_path / "check.md").read_text()
    assert "95 % interval" not in markdown
    assert "- **step**" not in markdown
    judged = run(tmp_path / "b", tmp_path / "a", "--allow", "single-run").stdout
    assert "1 of 1 limit is exceeded: step (median +25.0 %)" in judged
