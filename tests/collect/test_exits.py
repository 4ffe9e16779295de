"""How a run ends that its own code ends: every exit is a failed run with its reason, and none hangs the collection."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tracediff.collect import __main__ as collect_command, driver, worker
from tracediff.collect.driver import Collection
from tracediff.collect.variant import parse_variant
from tracediff.collected import collection_table
from tracediff.errors import TracediffError

SETTINGS = {"workload": "mlp", "target": None, "size": "tiny", "device": "cpu", "threads": 1, "seed": 0}
SETTINGS |= {"wait": 0, "warmup": 1, "active": 3, "timed": 3, "detail": "timing", "annotate": None, "provenance": True}
SAMPLES = Path(__file__).parents[2] / "sample_traces/vit"
OPEN_OUTPUT = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5)'])"
"""A process that keeps the output of the one that starts it open."""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("os._exit(0)", "its process ended itself, with exit code 0"),
        ("os._exit(3)", "its process ended itself, with exit code 3"),
        ("sys.exit(0)", "its process ended itself, with exit code 0"),
        ("print('all done', file=sys.stderr); os._exit(0)", "its process ended itself, with exit code 0"),
        ("sys.exit('no data')", "no data"),
        ("os.write(2, b'caf\\xe9'); os._exit(1)", "caf�"),
        ("os.execv('/bin/true', ['true'])", "its process ended itself, with exit code 0"),
        ("os.kill(os.getpid(), 9)", "its process was ended by SIGKILL, usually because memory ran out"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 1)", f"its process was ended by signal {driver.signal.SIGRTMIN + 1}"),
        ("raise ValueError('no')", "ValueError: no"),
        (f"{OPEN_OUTPUT}; os._exit(0)", "its process ended itself, with exit code 0"),
        (f"{OPEN_OUTPUT}; os._exit(4)", "its process ended itself, with exit code 4"),
        (f"{OPEN_OUTPUT}; time.sleep(5)", "it did not end within 0.005 minutes (--timeout)"),
    ],
)
def test_a_run_that_ends_itself_is_a_failed_one(tmp_path, monkeypatch, code, reason):
    program = f"import os, signal, subprocess, sys, time; {code}"
    monkeypatch.setattr(driver, "POLL_S", 0.05)
    monkeypatch.setattr(driver, "child_command", lambda *_: [sys.executable, "-c", program])
    variant = parse_variant("eager", ())
    timeout_s = 0.3 if "--timeout" in reason else 60
    collection = Collection(tmp_path, [variant], SETTINGS, 2, timeout_s=timeout_s)
    assert collection.collect() == 1
    assert collection.failed == {"eager": reason}
    assert json.loads((tmp_path / "collection.json").read_text())["variants"][0]["failed"] == reason


class Odd(BaseException):
    """An exception that no handler of an Exception takes."""


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (SystemExit(0), 1, "its code called sys.exit(0)"),
        (SystemExit(), 1, "its code called sys.exit(None)"),
        (SystemExit("no data"), 1, "its code called sys.exit('no data')"),
        (SystemExit("x" * 9000), 1, f"its code called sys.exit('{'x' * 199})"),
        (KeyboardInterrupt(), 1, "KeyboardInterrupt: "),
        (GeneratorExit(), 1, "GeneratorExit: "),
        (Odd("no"), 1, "Odd: no"),
        (ValueError("first\nsecond"), 1, "ValueError: first"),
        (TracediffError("make_step", "is odd", "mend it"), 2, "make_step: is odd; mend it"),
    ],
)
def test_whatever_the_code_of_a_run_raises_is_its_reason(tmp_path, monkeypatch, error, code, reason):
    def run(_spec):
        raise error

    monkeypatch.setattr(worker, "run", run)
    (tmp_path / "spec").write_text("{}")
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path / "spec"), str(tmp_path / "result")])
    with pytest.raises(SystemExit) as ended:
        worker.main()
    assert ended.value.code == code
    assert json.loads((tmp_path / "result").read_text()) == {"error": reason}


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "MASTER_PORT"])
@pytest.mark.parametrize("value", ["", "one", "-1", "1e3", "²", "9" * 5000])
def test_numbers_of_a_launcher_that_are_none_are_refused(tmp_path, monkeypatch, name, value):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv(name, value)
    with pytest.raises(TracediffError, match=f"environment variable {name}: .* is not a whole number; unset it"):
        Collection(tmp_path, [parse_variant("eager", ())], SETTINGS, 1).collect()


@pytest.mark.parametrize(("launchers", "ports"), [("29500", (29501, 29502)), ("40000", (20_001, 20_002))])
def test_the_port_of_a_run_is_none_that_systems_give_to_connections(monkeypatch, launchers, ports):
    monkeypatch.setenv("MASTER_PORT", launchers)
    assert (driver._port(1), driver._port(2)) == ports


def test_an_interrupted_collection_keeps_what_is_complete_and_says_how_to_see_it(tmp_path, monkeypatch, capsys):
    eager, script = parse_variant("eager", ()), parse_variant("script", ())
    collection = Collection(tmp_path, [eager, script], SETTINGS, 1)

    def watched(_command, _env, variant, _run, _phase_file):
        (tmp_path / variant.folder / "run1").mkdir(parents=True)
        if variant is script:
            raise KeyboardInterrupt
        return 1, "no"

    monkeypatch.setattr(collection, "_watched", watched)
    collection.runs["eager"] = {0: {}}
    monkeypatch.setattr(collect_command, "request_of", lambda _: collection)
    with pytest.raises(KeyboardInterrupt):
        collect_command.main([])
    assert not (tmp_path / "script").exists()
    assert f"so far: tracediff collect --show {tmp_path}" in capsys.readouterr().err


def test_a_variant_without_a_complete_run_does_not_keep_the_others_from_the_table(tmp_path):
    shutil.copytree(SAMPLES, tmp_path / "vit")
    shutil.rmtree(tmp_path / "vit/compile")
    (tmp_path / "vit/compile/run1").mkdir(parents=True)
    rows = {row.variant: row for row in collection_table(tmp_path / "vit").rows}
    assert rows["compile"].failed == "no run of it is complete"
    assert rows["eager"].step_us
