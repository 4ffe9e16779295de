"""Kills commands that write at random moments: `python tests/kills.py --each 50` does so for every command and signal,
prints the counts and exits with 1 if a run left a fault. tests/cli/test_kills.py does a handful.

After each kill every output is the old file or the new one, no process of the run is left, and nothing but one line is
on standard error; after the next whole run nothing else is left in the folders that were written to.
"""

import argparse
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from build_trace import call, document, kernel, op, step
from interrupts import heed_interrupts, of_session, wait_until

ROOT = Path(__file__).resolve().parents[1]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
OLD = b"old"
COMMANDS = {
    "compare": "compare a b --jobs 2 --json out/c.json --html out/c.html --markdown out/c.md",
    "analyze": "analyze a --jobs 2 --json out/a.json --html out/a.html",
    "check": "check a b --jobs 2 --json out/g.json --junit out/g.xml --markdown out/g.md",
    "matrix": "matrix a b c --jobs 2 --json out/m.json --markdown out/m.md",
    "export": "export a b --jobs 2 --csv out --folded out/f.txt --perfetto out/p.json.gz --charts out",
    "snapshot": "snapshot a --jobs 2 -o out/s.tdprof.gz",
    "collect": "collect --workload mlp --size tiny --device cpu --variant eager --repeats 1 --attempts 1 --active 2 "
    "--timed 2 --overwrite -o out",
}


def write_sets(folder, steps=8):
    """Three sets of two ranks in ``folder``."""
    for name, longer in (("a", 0), ("b", 40), ("c", 90)):
        (folder / name).mkdir()
        for rank in range(2):
            events = []
            for i in range(steps):
                t = 10_000 * i
                events.append(step(i, t, 9000))
                for k in range(40):
                    start, correlation = t + 200 * k, 1000 * i + k + 1
                    events += [
                        op(f"aten::mm{k % 7}", start, 100),
                        call("cudaLaunchKernel", start + 20, 5, correlation=correlation),
                        kernel(f"gemm{k % 7}", start + 60, 50 + longer, correlation=correlation),
                    ]
            text = json.dumps({**document(events), "distributedInfo": {"rank": rank, "world_size": 2}})
            (folder / name / f"rank{rank}.json.gz").write_bytes(gzip.compress(text.encode(), 1))


@dataclass
class Killed:
    """A command that is killed again and again, in a folder of its own with the sets.

    Attributes:
        seconds: that it takes when nothing interrupts it. code: its exit code then. written: its outputs, by path.
        counts: of its ends, by signal and exit code. faults: what a run left or said that it should not have.
    """

    name: str
    folder: Path
    seconds: float = 0.0
    code: int = 0
    written: dict[Path, bytes] = field(default_factory=dict)
    counts: Counter = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def outputs(self):
        return {p: p.read_bytes() for p in sorted((self.folder / "out").rglob("*")) if p.is_file()}

    @property
    def temporary(self):
        """Names of the temporary files and folders."""
        return set(os.listdir(self.folder / "temporary"))

    def start(self):
        (self.folder / "temporary").mkdir(exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-m", "tracediff", *COMMANDS[self.name].split()],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}",
                "TMPDIR": str(self.folder / "temporary"),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )

    def run_whole(self):
        """Let it run to its end, check that nothing else is left, and keep what it wrote."""
        begun = time.monotonic()
        process = self.start()
        _, said = process.communicate()
        self.seconds = time.monotonic() - begun
        self.code = process.returncode
        if self.code not in (0, 3):  # 3: a check that decides nothing
            self.faults.append(f"whole run: exit code {self.code}: {said.decode()[-300:]}")
        before, self.written = self.written, self.outputs
        if before and set(before) != set(self.written):
            self.faults.append(f"whole run: other files: {sorted(map(str, set(before) ^ set(self.written)))}")
        if self.temporary:
            self.faults.append(f"whole run: left {sorted(self.temporary)}")

    def kill(self, ending, moment):
        """Start it over old files, send it the signal after ``moment`` seconds, and check what it leaves."""
        if self.name != "collect":  # which has one folder, and nothing in it to keep
            for path in self.written:
                path.write_bytes(OLD)
        process, before = self.start(), self.temporary
        time.sleep(moment)
        in_time = process.poll() is None
        process.send_signal(ending)
        _, said = process.communicate()
        self.counts[ending.name, process.returncode if in_time else "too late"] += 1
        fault = f"{ending.name} after {moment:.3f} s, exit code {process.returncode}"
        lines = said.decode().splitlines()
        if process.returncode not in (self.code, -ending, 128 + ending):
            self.faults.append(f"{fault}: {lines[-3:]}")
        if process.returncode == -signal.SIGINT and "in end" not in said.decode():
            self.counts["before the command began"] += 1  # Python's own message
        elif self.name != "collect" and lines not in ([], ["tracediff: interrupted"]):
            self.faults.append(f"{fault}: said {lines}")
        try:
            wait_until(lambda: not of_session(process.pid), "end of all processes")
        except AssertionError:
            self.faults.append(f"{fault}: processes left: {of_session(process.pid)}")
        for path, data in self.outputs.items():
            if path.name.startswith("."):
                self.counts[f"temporary file after {ending.name}"] += 1
            elif self.name == "collect":
                check_whole(path, data, fault, self.faults)
            elif data not in (OLD, self.written[path]):
                self.faults.append(f"{fault}: {path.name} is neither the old nor the new file ({len(data)} bytes)")
        left = self.temporary - before  # those of killed runs stay until a run makes a folder of its own
        if left and ending != signal.SIGKILL and process.returncode == 128 + ending:
            self.faults.append(f"{fault}: left {sorted(left)}")
        self.counts[f"temporary folders after {ending.name}"] += len(left)


def check_whole(path, data, fault, faults):
    """Check that ``data`` is whole JSON."""
    try:
        json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (ValueError, EOFError, gzip.BadGzipFile):
        faults.append(f"{fault}: {path.name} is incomplete ({len(data)} bytes)")


def kill_often(name, each, folder, seed=0, signals=SIGNALS):
    """``name`` after ``each`` kills with each signal, in an empty ``folder``."""
    write_sets(folder)
    (folder / "out").mkdir()
    killed, moments = Killed(name, folder), random.Random(f"{name} {seed}")
    killed.run_whole()
    for _ in range(each):
        for ending in signals:
            killed.kill(ending, moments.uniform(0.05, killed.seconds * 1.02))
    killed.run_whole()
    return killed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", help=f"of {', '.join(COMMANDS)}; all by default")
    parser.add_argument("--each", type=int, default=50, help="kills per command and signal")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faults = 0
    for name in options.commands or COMMANDS:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            killed = kill_often(name, options.each, Path(folder), options.seed)
        faults += len(killed.faults)
        print(f"{name} ({killed.seconds:.1f} s, {3 * options.each} kills): {len(killed.faults)} faults")
        for what, count in sorted((str(what), count) for what, count in killed.counts.items()):
            print(f"  {count:4} {what}")
        for fault in killed.faults:
            print(f"  fault: {fault}", flush=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
