"""The examples of docs/concepts: traces of a few events, and samples of runs. Their numbers are the product's."""

import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from build_trace import Event, annotation, call, document, kernel, memcpy, op, step, write

LAUNCH = "cudaLaunchKernel"


def _period() -> list[Event]:
    """Three steps of 30 µs on the host, each of which launches a kernel of 45 µs."""
    events: list[Event] = []
    for number in range(3):
        start, correlation = 30 * number, number + 1
        events += [step(number + 1, start, 30), op("aten::mm", start + 4, 22), call(LAUNCH, start + 8, 4, correlation)]
        events.append(kernel("gemm", 14 + 45 * number, 45, correlation))
    return events


def _states() -> list[Event]:
    """One step that is in most states once."""
    return [
        step(1, 0, 200),
        annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 30),
        op("aten::copy_", 35, 30),
        call("cudaMemcpyAsync", 40, 10, correlation=1),
        memcpy("Memcpy HtoD (Pinned -> Device)", 60, 25, correlation=1),
        op("aten::mm", 90, 40),
        call(LAUNCH, 105, 10, correlation=2),
        kernel("gemm", 125, 50, correlation=2),
        call("cudaDeviceSynchronize", 140, 50),
    ]


def _self_time() -> list[Event]:
    """Operators within operators, on the CPU."""
    return [
        step(1, 0, 100),
        op("aten::linear", 5, 80),
        op("aten::t", 10, 15),
        op("aten::transpose", 13, 9),
        op("aten::addmm", 30, 50),
    ]


def _spilled() -> list[Event]:
    """A kernel that was launched before the recording runs within its first step."""
    return [
        kernel("of_before", 5, 35, correlation=9),
        step(1, 0, 60),
        call(LAUNCH, 10, 5, correlation=1),
        kernel("gemm", 40, 40, correlation=1),
        step(2, 60, 60),
        call(LAUNCH, 70, 5, correlation=2),
        kernel("gemm", 80, 40, correlation=2),
    ]


def _matching(kernels: dict[str, list[tuple[str, int]]]) -> list[Event]:
    """Operators one after another; each launches its kernels (name, µs)."""
    events, now, free, correlation = [step(1, 0, 20 * len(kernels))], 0, 5, 0
    for name, launched in kernels.items():
        events.append(op(name, now + 1, 18, **{"Input Dims": [[64, 64]]}))
        for k, (kernel_name, duration) in enumerate(launched):
            correlation += 1
            events.append(call(LAUNCH, now + 2 + 6 * k, 4, correlation))
            free = max(free, now + 7 + 6 * k)
            events.append(kernel(kernel_name, free, duration, correlation))
            free += duration
        now += 20
    return events


def _control() -> list[Event]:
    return _matching(
        {
            "aten::mm": [("sgemm_64x64", 20)],
            "aten::bmm": [("sgemm_128x64", 20)],
            "aten::gelu": [("gelu_kernel", 10)],
            "aten::mul": [("mul_kernel", 10)],
            "aten::copy_": [("copy_kernel", 8)],
        }
    )


def _test() -> list[Event]:
    return _matching(
        {
            "aten::mm": [("sgemm_64x64", 20)],
            "aten::bmm": [("cutlass_128x128_tensorop", 12)],
            "triton_poi_fused_gelu_mul_0": [("triton_poi_fused_gelu_mul_0", 12)],
        }
    )


TRACES = {
    "period": _period,
    "states": _states,
    "self-time": _self_time,
    "spilled": _spilled,
    "matching-control": _control,
    "matching-test": _test,
}


@dataclass(frozen=True)
class Part:
    """A part of a step in µs: what is done, of which `amount` (0: not recorded), and when the step waits for it."""

    label: str
    kind: str
    start: int
    end: int
    path: tuple[tuple[int, int], ...]
    amount: int = 1

    @property
    def total(self) -> int:
        return self.end - self.start

    @property
    def on_path(self) -> int:
        return sum(stop - start for start, stop in self.path)

    def pieces(self) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether the step waits for it)."""
        cuts = sorted({self.start, self.end, *(at for span in self.path for at in span)})
        for start, stop in pairwise(cuts):
            yield start, stop, any(a <= start and stop <= b for a, b in self.path)


def _host(end: int, waited: int) -> Part:
    return Part("host", "op", 0, end, ((0, waited),))


def _gpu(label: str, start: int, end: int, amount: int = 1, kind: str = "gpu_compute") -> Part:
    return Part(label, kind, start, end, ((start, end),), amount)


EFFECT_STEPS = {
    "presence": {
        "control": [_host(20, 20), _gpu("mm", 20, 60)],
        "test": [_host(20, 20), _gpu("mm", 20, 60), _gpu("copy", 60, 80, kind="gpu_copy")],
    },
    "amount": {
        "control": [_host(20, 20), _gpu("mm", 20, 60)],
        "test": [_host(20, 20), _gpu("mm", 20, 100, amount=2)],
    },
    "speed": {
        "control": [_host(20, 20), _gpu("mm", 20, 80)],
        "test": [_host(20, 20), _gpu("mm", 20, 50)],
    },
    "time": {
        "control": [_host(20, 20), _gpu("all_reduce", 20, 60, amount=0, kind="gpu_comm")],
        "test": [_host(20, 20), _gpu("all_reduce", 20, 90, amount=0, kind="gpu_comm")],
    },
    "exposure": {
        "control": [_host(90, 90), Part("mm", "gpu_compute", 20, 70, ())],
        "test": [_host(20, 20), _gpu("mm", 20, 70)],
    },
}
"""Steps of control and test that differ by one effect each."""


def write_traces(folder: Path) -> dict[str, Path]:
    """Write all examples to ``folder``; name → file."""
    return {name: write(folder / f"{name}.json", document(events())) for name, events in TRACES.items()}


def runs(change: float, spread: float, count: int, seed: int) -> tuple[list[float], list[float]]:
    """``count`` runs per side, as logarithms of their step times: they differ by ``change`` and vary by ``spread``."""
    draw = random.Random(seed)
    control, test = ([math.log(centre) + draw.gauss(0, spread) for _ in range(count)] for centre in (1, 1 + change))
    return control, test
