"""The options of ``tracediff collect``, in argparse: a GPU host may have nothing but torch."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracediff.collect.driver import Collection
from tracediff.collect.variant import Variant, parse_variant
from tracediff.collect.workloads import NAMES, workload
from tracediff.errors import TracediffError

EXAMPLES = """
examples:
  tracediff collect --workload vit --variant eager --variant compile -o out/
  tracediff collect train.py:make_step --variant eager --variant compile:mode=max-autotune -o out/
  tracediff collect train.py:make_step --variant eager --variant eager@again -o aa/ -- --batch 64
  torchrun --nproc-per-node 2 -m tracediff.collect train.py:make_step --variant eager -o out/
  tracediff collect --show out/
"""


@dataclass(frozen=True)
class ShowRequest:
    """The table of a collection that was asked for.

    Attributes:
        out: folder of the collection. json_file, markdown_file: where to write it, None for the screen.
    """

    out: Path
    json_file: str | None = None
    markdown_file: str | None = None


def parser() -> argparse.ArgumentParser:
    """The argument parser."""
    p = argparse.ArgumentParser(
        prog="tracediff collect",
        description="Run steps under torch.profiler, every variant and repeat in its own process, and write trace "
        "sets to compare.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own_code = "your own code: make_step(variant, …) returns a step to call, or an object with step()"
    variants = (
        "eager, amp, compile[:mode=…,backend=…,dynamic,fullgraph], …, joined by +; V@name repeats one under "
        "another name"
    )
    p.add_argument("target", nargs="?", metavar="FILE.py:make_step", help=own_code)
    p.add_argument(
        "--workload", metavar="NAME", help="one of the workloads that --list prints, instead of your own code"
    )
    p.add_argument("--list", action="store_true", help="print the workloads with their variants")
    p.add_argument(
        "--size", choices=("tiny", "small", "full"), default="small", help="size of the workload (default: small)"
    )
    p.add_argument("--variant", action="append", metavar="V", help=variants)
    p.add_argument("-o", "--out", type=Path, metavar="DIR", help="folder of the collection")
    p.add_argument("--overwrite", action="store_true", help="replace what is in DIR")
    p.add_argument("--repeats", type=_positive, default=5, metavar="K", help="runs of each variant (default: 5)")
    p.add_argument("--device", default=None, help="cpu or cuda (default: cuda where there is one)")
    p.add_argument("--threads", type=_positive, default=1, metavar="N", help="CPU threads of a run (default: 1)")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of every run (default: 0)")
    p.add_argument("--wait", type=int, default=1, metavar="N", help="steps before the profiler starts (default: 1)")
    p.add_argument(
        "--warmup", type=int, default=2, metavar="N", help="steps with the profiler running, not recorded (default: 2)"
    )
    p.add_argument("--active", type=_positive, default=5, metavar="N", help="steps recorded (default: 5)")
    p.add_argument(
        "--timed", type=_positive, default=10, metavar="N", help="steps timed without the profiler (default: 10)"
    )
    p.add_argument(
        "--detail",
        choices=("timing", "structure", "all"),
        default="timing",
        help="shapes; and stacks and modules; and memory (default: timing)",
    )
    p.add_argument(
        "--show", type=Path, metavar="DIR", help="show the table of the collection in DIR instead of collecting"
    )
    p.add_argument("--json", metavar="FILE", help="with --show: write the table as JSON (- is standard output)")
    p.add_argument("--markdown", metavar="FILE", help="with --show: write the table as Markdown (- is standard output)")
    p.add_argument("--annotate", choices=("fx", "modules"), help="give every FX node or nn.Module a scope of its own")
    return p


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value


def request_of(arguments: Sequence[str]) -> Collection | ShowRequest | None:
    """What the command line asks to collect or to show; None where it asked for the list, which is printed.

    Raises:
        TracediffError: the request makes no sense, or the folder is not empty.
    """
    own, mark, rest = _split(list(arguments))
    options = parser().parse_args(own)
    if options.list:
        print(listing())
        return None
    if options.show:
        return ShowRequest(options.show, options.json, options.markdown)
    if options.json or options.markdown:
        raise TracediffError("--json, --markdown", "are formats of a collection's table", "add --show DIR")
    if (options.workload is None) == (options.target is None):
        reason = "give your own FILE.py:make_step or --workload NAME, one of the two"
        raise TracediffError("tracediff collect", reason, "`tracediff collect --list` prints the workloads")
    if mark and options.workload:
        raise TracediffError("--", "arguments behind -- go to make_step, and a workload takes none", "use --size")
    if options.out is None:
        raise TracediffError("-o", "where to put the traces is missing", "add -o DIR")
    variants = _variants(options)
    device = options.device or _default_device()
    if os.environ.get("RANK", "0") == "0":  # the others come to a folder that the first has begun to fill
        _prepare(options.out, options.overwrite)
    keys = ("workload", "target", "size", "threads", "seed", "wait", "warmup", "active", "timed", "detail", "annotate")
    settings: dict[str, Any] = {**{k: getattr(options, k) for k in keys}, "device": device, "arguments": rest}
    if options.target:
        settings["size"] = None
    return Collection(options.out, variants, settings, options.repeats)


def _split(arguments: list[str]) -> tuple[list[str], bool, list[str]]:
    """What stands before and behind ``--``."""
    if "--" not in arguments:
        return arguments, False, []
    at = arguments.index("--")
    return arguments[:at], True, arguments[at + 1 :]


def _variants(options: argparse.Namespace) -> list[Variant]:
    own: tuple[str, ...] = ()
    texts = options.variant
    if options.workload:
        chosen = workload(options.workload)
        own, texts = chosen.OWN, texts or list(chosen.VARIANTS)
    variants = [parse_variant(text, own) for text in texts or ["eager"]]
    twice = [v.text for i, v in enumerate(variants) if v.folder in [w.folder for w in variants[:i]]]
    if twice:
        raise TracediffError(f"--variant {twice[0]}", "given twice", f"give the second another name: {twice[0]}@again")
    return variants


def _default_device() -> str:
    from tracediff.collect.record import import_torch

    return "cuda" if import_torch("tracediff collect").cuda.is_available() else "cpu"


def _prepare(out: Path, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise TracediffError(str(out), "is a file", "give a folder with -o")
    if out.exists() and any(out.iterdir()):
        if not overwrite:
            raise TracediffError(str(out), "is not empty", "give another folder, or --overwrite to replace it")
        if not (out / "collection.json").exists() and not list(out.glob("*/manifest.json")):
            raise TracediffError(
                str(out), "holds something else than a collection", "remove it yourself, or give another folder"
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)


def listing() -> str:
    """The workloads, a line of what each is and a line of its variants."""
    lines = []
    for name in NAMES:
        module = workload(name)
        lines += [f"{name:24}{module.TITLE}", f"{'':24}{'  '.join(module.VARIANTS)}"]
    return "\n".join(lines)
