"""What is true of real pairs: what an explanation must say of each, and what it must never say.

Somebody changed one thing between the sides of each pair, and the truth is from plain scripts on the raw JSON. A claim
is a sentence and a predicate on an `Explained`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pytest
from traces import FOLDER, PAIRS_FOLDER

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.explanation import Cause
from tracediff.explain.leaves import GPU
from tracediff.present.answer import evidence, headline
from tracediff.present.path import read_path
from tracediff.structs import SIDES

FIRST = 3
"""Lines that are read first."""


@dataclass(frozen=True)
class Explained:
    """What a comparison says, as its screens say it."""

    comparison: Comparison

    @property
    def facts(self) -> set[str]:
        return {fact.code for fact in self.comparison.explanation.facts}

    @property
    def exposures(self) -> list[tuple[str, float]]:
        exposed = read_path(self.comparison.explanation).exposed
        return [(f"{part.work}, {part.times.exposed} {part.mostly}", part.times.exposure) for part in exposed]

    @property
    def causes(self) -> tuple[Cause, ...]:
        return self.comparison.explanation.causes

    @property
    def fact_texts(self) -> str:
        return "; ".join(fact.text for fact in self.comparison.explanation.facts)

    @property
    def cautions(self) -> set[str]:
        return {reason.code for reason in self.comparison.comparability.reasons}

    @property
    def verdict(self) -> str:
        return f"{headline(self.comparison)}; {evidence(self.comparison)}"

    @property
    def text(self) -> str:
        """Every sentence about the comparison."""
        return "\n".join(
            [self.verdict, self.fact_texts, *map(told_of, self.causes), *(label for label, _ in self.exposures)]
        )

    def first(self, word: str, sign: int = 0, among: int = FIRST) -> bool:
        """Whether one of the first lines is about ``word``, with a change of that ``sign``."""
        return any(word in told_of(cause) and sign * cause.delta_us >= 0 for cause in self.causes[:among])

    def on_gpu(self, cause: Cause) -> bool:
        return (*cause.trail, cause.label)[0] == GPU

    def reasons(self, word: str = "") -> set[str]:
        """Codes of the reasons of lines about ``word``."""
        return {reason.code for cause in self.causes if word in told_of(cause) for reason in cause.reasons}


def told_of(cause: Cause) -> str:
    """All that a line says, and the labels around it."""
    return " | ".join((*cause.trail, cause.label, cause.what, *(reason.text for reason in cause.reasons)))


Claim = tuple[str, Callable[[Explained], bool]]


@dataclass(frozen=True, kw_only=True)
class Story:
    """One pair.

    Attributes:
        control, test: names of the sides in their folder. must, never: claims. broken: sentence of a claim that fails
            today → why.
    """

    control: str
    test: str
    must: tuple[Claim, ...] = ()
    never: tuple[Claim, ...] = ()
    broken: dict[str, str] = field(default_factory=dict)
    folder: Path = PAIRS_FOLDER

    @property
    def name(self) -> str:
        return f"{self.control}-{self.test}".replace("/", ".")

    @property
    def paths(self) -> list[str]:
        return [str(self.folder / name) for name in (self.control, self.test)]


@lru_cache(maxsize=1)
def sets(control: str, test: str) -> list[TraceSet]:
    """The sets of a pair; the tests of one pair follow each other (`follow_each_other`), so that it is read once."""
    return load_sets([control, test])


@lru_cache(maxsize=1)
def compared(control: str, test: str) -> Comparison:
    """Both compared, also where the preflight refuses."""
    return compare_sets(*sets(control, test), force=True)


def follow_each_other(items: list[pytest.Item]) -> None:
    """Have the tests of each story, which are in several modules, run in turn."""
    places: dict[str, int] = {}
    names = [story_of(item) or item.nodeid for item in items]
    order = sorted(range(len(items)), key=lambda k: places.setdefault(names[k], k))
    items[:] = [items[k] for k in order]


def story_of(item: pytest.Item) -> str | None:
    """The name of the story that a test is of."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters["story"].name if "story" in parameters else None


def of_pair(name: str, control: str, test: str, **claims: object) -> Story:
    return Story(control=f"{name}/{control}", test=f"{name}/{test}", **claims)  # type: ignore[arg-type]


def of_traces(control: str, test: str, **claims: object) -> Story:
    return Story(control=control, test=test, folder=FOLDER, **claims)  # type: ignore[arg-type]


def fused_attention_is_split(explained: Explained) -> bool:
    """Whether the replayed kernel of each layer is in one group with the two that replace it."""
    attention = [group for group in explained.comparison.gpu_time.groups if group.family == "attention"]
    names = [sorted(member.name for member in group.members.test) for group in attention]
    split = [found for found in names if len(found) == 2 and "_QKV_" in found[0] and "_reduce_" in found[1]]
    return len(split) == len(attention) - 1 == 31


NO_ADVICE_ON_KERNELS = (
    "gemm kernels were replaced, or have another dtype or layout",
    lambda explained: bool(explained.reasons("gemm") & {"other-kernels", "dtype", "layout", "tensor-cores"}),
)
GPU_CAUSE = ("a change of kernels is a cause", lambda explained: any(map(explained.on_gpu, explained.causes)))
OTHER_PROGRAM = ("it is another program", lambda explained: "other-program" in explained.facts)

STORIES = (
    of_pair(
        "deepseek_decode",
        "b300",
        "mi300",
        must=(
            ("GPU work is slower, before all else", lambda t: t.on_gpu(t.causes[0]) and t.causes[0].delta_us > 0),
            (
                "gemm and attention are the first two lines",
                lambda t: t.first("gemm", 1, 2) and t.first("attention", 1, 2),
            ),
            ("gemm and attention are among the first lines", lambda t: t.first("gemm", 1) and t.first("attention", 1)),
            ("the norm is called one", lambda t: any(c.label.startswith("norm: kernel_cutlass") for c in t.causes)),
            (
                "a fused attention is paired with both of its parts, in all layers but the last",
                fused_attention_is_split,
            ),
        ),
        never=(
            ("host work fell, as the first cause", lambda t: t.causes[0].delta_us < 0),
            ("part of the GPU time does not reach the step", lambda t: "reaches" in t.text or "shortens" in t.text),
            ("RMSNorm was added", lambda t: any("norm" in c.label and c.what == "added" for c in t.causes)),
        ),
    ),
    of_pair(
        "flux_versions",
        "v26.6",
        "v26.7",
        must=(
            ("the work differs", lambda t: "work-differs" in t.facts),
            ("it is 1/16 of the work", lambda t: "6.25 % of the FLOPs" in t.fact_texts),
            ("the times do not compare", lambda t: "ifferent work" in t.verdict),
        ),
        never=(
            NO_ADVICE_ON_KERNELS,
            ("gemm was replaced", lambda t: "replaced" in t.text),
            ("a side is faster", lambda t: "faster" in t.verdict or "slower" in t.verdict),
        ),
    ),
    of_pair(
        "flux_attention",
        "fmha",
        "sage",
        must=(
            ("the capture of the CUDA graph is first", lambda t: t.first("CUDAGraphNode.record", 1, 1)),
            ("it accounts for nearly all", lambda t: abs(t.causes[0].delta_us - 315_300) < 500),
            ("it is no steady state", lambda t: "not-steady" in t.facts),
        ),
        never=(
            ("a compiled region is the cause", lambda t: "Torch-Compiled Region" in t.text),
            ("sage_quant is called more often", lambda t: "sage_quant" in t.text or "629" in t.text),
        ),
    ),
    of_pair(
        "particle_batch",
        "bs16",
        "bs512",
        must=(
            ("the work differs", lambda t: "work-differs" in t.facts),
            (
                "one launch of a convolution is first, with its part",
                lambda t: (
                    "LaunchKernel in aten::cudnn_convolution" in t.causes[0].label
                    and "one of" in told_of(t.causes[0])
                    and abs(t.causes[0].delta_us - 626_300) < 200
                ),
            ),
            (
                "the gap before delta_r2 is next, with its part",
                lambda t: (
                    "in bs512 takes 292 ms, before delta_r2" in told_of(t.causes[1])
                    and abs(t.causes[1].delta_us - 292_300) < 6_000
                ),
            ),
            ("GPU work has its part", lambda t: t.first("GPU work", 1)),
        ),
        never=(
            ("launch fewer kernels", lambda t: "fewer" in t.text),
            ("launches have a pace", lambda t: "× the time" in told_of(t.causes[0])),
        ),
    ),
    of_pair(
        "particle_train_eval",
        "train",
        "eval",
        must=(
            ("the operators of dropout are gone", lambda t: t.first("aten::bernoulli_", -1)),
            (
                "bernoulli_ is removed, with its time",
                lambda t: any(
                    "bernoulli_" in c.label and c.what == "removed" and abs(c.control_us - 711_000) < 2000
                    for c in t.causes
                ),
            ),
            (
                "its multiplications are gone, with their time",
                lambda t: any(
                    "aten::mul" in c.label
                    and c.what == "mostly removed ones"
                    and "67 → 35 operators" in {reason.text for reason in c.reasons}
                    and abs(c.delta_us + 295_500) < 2000
                    for c in t.causes
                ),
            ),
        ),
        never=(
            ("native_batch_norm was replaced", lambda t: "replaced" in t.text and "native_batch_norm" in t.text),
            ("bernoulli_ is called 272 times", lambda t: "272" in t.text),
            ("native_batch_norm is called more often", lambda t: "count" in t.reasons("native_batch_norm")),
        ),
    ),
    of_pair(
        "switch_batch",
        "b4x128",
        "b8x1024",
        must=(
            ("the work differs", lambda t: "work-differs" in t.facts),
            ("it is 16 times the tokens", lambda t: "16 ×" in t.fact_texts),
            (
                "GPU work is first, all of it",
                lambda t: t.on_gpu(t.causes[0]) and t.comparison.us(t.comparison.gpu_time.time.test) > 560_000,
            ),
            (
                "a first launch takes less",
                lambda t: any("single" in {r.code for r in c.reasons} and c.delta_us < -170_000 for c in t.causes),
            ),
        ),
        never=(
            NO_ADVICE_ON_KERNELS,
            ("9.8 % of the work has other shapes", lambda t: "9.8 %" in t.text),
            ("GPU work takes 8.4 ms", lambda t: any(8_000 < c.control_us < 9_000 for c in t.causes if t.on_gpu(c))),
            (
                "aten::linear is called more often",
                lambda t: any("linear" in c.label and "calls" in c.what for c in t.causes),
            ),
            (
                "the first launch of topk takes 1 ms",
                lambda t: any("topk" in c.label and c.test_us < 5_000 for c in t.causes),
            ),
        ),
    ),
    of_pair(
        "llama_tp2",
        "dim256",
        "dim1024",
        must=(
            ("it is another model", lambda t: bool(t.facts & {"work-differs", "other-program"})),
            ("rank 0 is compared with rank 0", lambda t: list(t.comparison.control.ranks) == [0]),
            (
                "it states which ranks are compared",
                lambda t: (
                    "recorded ranks 0–1 → rank 0; only rank 0 compared"
                    in {reason.in_short(SIDES) for reason in t.comparison.comparability.reasons}
                ),
            ),
            (
                "one AllGather is first, with its time",
                lambda t: (
                    "one " in t.causes[0].label
                    and "AllGather" in t.causes[0].label
                    and abs(t.causes[0].delta_us + 440_400) < 200
                ),
            ),
            (
                "the other collectives take longer",
                lambda t: any("other communication" in c.label and c.delta_us > 0 for c in t.causes),
            ),
        ),
        never=(
            NO_ADVICE_ON_KERNELS,
            ("cudaFree is gone", lambda t: any("cudaFree" in c.label and not c.test_us for c in t.causes)),
            ("launches of aten::silu are fewer", lambda t: "done less often" in t.text),
        ),
    ),
    of_pair(
        "ascend_levels",
        "level0",
        "level1",
        must=(
            (
                "the profiler's level differs",
                lambda t: "profiler" in t.fact_texts or bool({"profiler-flags"} & t.cautions),
            ),
            ("communication is first", lambda t: t.first("communication", 1, 1)),
        ),
        never=(
            ("HcclAllreduce was added", lambda t: any("Allreduce" in c.label and c.what == "added" for c in t.causes)),
            ("there is no GPU time", lambda t: not t.comparison.gpu_time.groups),
            ("the limit moved", lambda t: " now on the path, not " in t.text),
            ("work starts later", lambda t: "starts later" in t.text),
            (
                "an operator takes less, which waited unseen",
                lambda t: any("_local_scalar_dense" in c.label for c in t.causes),
            ),
            ("a copy takes less, which waited unseen", lambda t: any("copy_" in c.label for c in t.causes)),
        ),
    ),
    of_pair(
        "unit_attn_fused",
        "control",
        "test",
        must=(("one kernel is paired with three", lambda t: paired_kernels(t) == [(1, 3)]),),
        never=(("anything of the GPU changed the step", lambda t: any(map(t.on_gpu, t.causes))),),
    ),
    of_pair(
        "unit_moe_fused",
        "control",
        "test",
        must=(("four kernels stand against one", lambda t: paired_kernels(t) == [(4, 1)]),),
        never=(("anything of the GPU changed the step", lambda t: any(map(t.on_gpu, t.causes))),),
    ),
    of_pair(
        "unit_gemm_identical",
        "control",
        "test",
        must=(
            ("nothing changed", lambda t: not t.causes),
            ("one is paired with one", lambda t: paired_kernels(t) == [(1, 1)]),
        ),
    ),
    of_pair(
        "unit_mm_linear",
        "control",
        "test",
        must=(("the product is named", lambda t: "aten::mm" in t.text and "aten::addmm" in t.text),),
        never=(OTHER_PROGRAM,),
    ),
    of_traces(
        "resnet50_workers0",
        "resnet50_workers4",
        must=(
            (
                "waiting for data is first, and most",
                lambda t: t.first("loading data", -1, 1) and t.causes[0].delta_us < -50_000,
            ),
            (
                "the step gains what loading takes less, as the host limits it",
                lambda t: (
                    not t.exposures and t.causes[0].delta_us < 0.9 * (t.causes[0].test_us - t.causes[0].control_us)
                ),
            ),
        ),
        never=(GPU_CAUSE, OTHER_PROGRAM),
    ),
    of_traces(
        "resnet50_workers0",
        "resnet50_workers0_repeat",
        must=(("significance is unknown", lambda t: "significance unknown" in t.verdict),),
        never=(GPU_CAUSE, OTHER_PROGRAM, ("the work differs", lambda t: "work-differs" in t.facts)),
    ),
    of_traces(
        "transformer_h100_run1",
        "transformer_h100_run2",
        must=(("significance is unknown", lambda t: "significance unknown" in t.verdict),),
        never=(GPU_CAUSE, OTHER_PROGRAM, ("the work differs", lambda t: "work-differs" in t.facts)),
    ),
    of_traces(
        "tinylm_compile",
        "tinylm_cudagraph",
        must=(
            ("it takes as long", lambda t: "the same time" in t.verdict),
            (
                "only one side replays graphs",
                lambda t: "only tinylm_cudagraph replays graphs" in t.fact_texts,
            ),
            (
                "the GPU hides what the host does",
                lambda t: (
                    "host work without waiting (mostly operator calls that only one side makes) 7.42 → 2.03 ms"
                    in t.fact_texts
                ),
            ),
        ),
        never=(
            OTHER_PROGRAM,
            ("it takes less time", lambda t: "less time per step" in t.verdict),
            ("a line is of a tenth of the step", lambda t: any(abs(c.delta_us) > 2_000 for c in t.causes)),
        ),
    ),
    of_traces(
        "hta_control",
        "hta_test",
        must=(
            ("the machines are other ones", lambda t: {"gpu", "world-size"} <= t.cautions),
            ("GPU work is first", lambda t: t.on_gpu(t.causes[0]) and t.causes[0].delta_us > 0),
            ("copies are done more often", lambda t: t.first("copy", 1)),
            (
                "work that is paired with nothing says what it is",
                lambda t: (t.causes[0].label, t.causes[0].what) == ("Memcpy DtoD in aten::copy_", "added"),
            ),
        ),
        never=(
            (
                "the same copies use other memory",
                lambda t: "memory" in t.reasons(),
            ),
            ("kernels and calls are counted together", lambda t: "358 → 407" in t.text),
        ),
    ),
    of_traces(
        "dlrm_8ranks/worker7_step_12.1694128201553.pt.trace.json.gz",
        "dlrm_8ranks/worker1_step_12.1694128201556.pt.trace.json.gz",
        must=(
            ("the wait in a collective is first", lambda t: t.first("ncclKernel_SendRecv", 1, 1)),
            ("ranks wait for one another", lambda t: "other-ranks" in t.facts),
        ),
        never=(
            ("the rank that waits is slower", lambda t: "slower" in t.verdict),
            ("as many collectives are done more often", lambda t: "done more often" in t.text),
        ),
    ),
    of_traces(
        "sglang_decode_mi300",
        "vllm_graph_mi300",
        must=(("whether it is the same work is unknown", lambda t: "unknown-work" in t.facts),),
        never=(("a launch is done less often", lambda t: "done less often" in t.text),),
    ),
    of_traces(
        "hta_ns",
        "hta_nccl",
        must=(
            (
                "the host makes as many calls of operators, whatever the driver is asked",
                lambda t: any(c.what == "4,782 calls each, 10.1 × as long" for c in t.causes),
            ),
        ),
    ),
    of_traces(
        "bertsmall_h100",
        "bertsmall_mi300",
        must=(
            ("it takes less time", lambda t: "9.5 % less time" in t.verdict),
            (
                "the calls of both sides take less time, though there are more",
                lambda t: any(c.what == "479 calls each, 1.09 × as fast" for c in t.causes),
            ),
            ("the host is first", lambda t: not t.on_gpu(t.causes[0]) and t.causes[0].delta_us < 0),
            ("GPU work takes longer", lambda t: gpu_time(t)[1] > 1.2 * gpu_time(t)[0]),
        ),
        never=(
            GPU_CAUSE,
            OTHER_PROGRAM,
            ("Python before a synchronisation is gone", lambda t: "before cudaDeviceSynchronize" in t.text),
        ),
    ),
    of_traces(
        "falconsai_h100",
        "falconsai_mi300",
        must=(
            ("it takes less time", lambda t: "5.6 % less time" in t.verdict),
            ("the host is first", lambda t: not t.on_gpu(t.causes[0]) and t.causes[0].delta_us < 0),
            ("GPU work takes longer", lambda t: gpu_time(t)[1] > 1.2 * gpu_time(t)[0]),
        ),
        never=(
            GPU_CAUSE,
            OTHER_PROGRAM,
            ("Python before a synchronisation is gone", lambda t: "before cudaDeviceSynchronize" in t.text),
        ),
    ),
    of_traces(
        "timesformer_h100",
        "timesformer_mi300",
        must=(
            ("it takes longer", lambda t: "2.1 % longer" in t.verdict),
            ("the host is first", lambda t: not t.on_gpu(t.causes[0]) and t.causes[0].delta_us > 0),
            (
                "the softmax is faster",
                lambda t: any("softmax" in c.label.lower() and c.delta_us < -20_000 for c in t.causes),
            ),
            (
                "its kernels are the reason, and its operator is the line",
                lambda t: any(
                    c.label == "aten::_softmax([8,12,3137,3137])" and "other-kernels" in t.reasons(c.label)
                    for c in t.causes
                ),
            ),
        ),
        never=(
            OTHER_PROGRAM,
            ("copies use other memory", lambda t: "memory" in t.reasons()),
            ("the limit moved", lambda t: " now on the path, not " in t.text),
        ),
    ),
    of_traces(
        "dlrm_8ranks", "dlrm_8ranks", must=(("nothing changed", lambda t: not t.causes and t.facts == {"same-calls"}),)
    ),
    of_traces("hta_tiny/base.json.gz", "hta_tiny/test.json.gz"),
)


def paired_kernels(explained: Explained) -> list[tuple[int, int]]:
    """(kernels of control, of test) of the groups of work that both sides have."""
    comparison = explained.comparison
    return [
        (round(comparison.number(g.count.control)), round(comparison.number(g.count.test)))
        for g in comparison.gpu_time.groups
        if all(g.members)
    ]


def gpu_time(explained: Explained) -> tuple[float, float]:
    """All time of the GPU in the period, of control and test."""
    control, test = explained.comparison.explanation.root.children[GPU].total
    return float(control), float(test)
