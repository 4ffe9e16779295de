"""The options of ``tracediff collect``, argparse because a GPU host may have only torch; and `collect`, the same as a
function.
"""

import argparse
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from tracediff.collect.driver import ATTEMPTS, OF_RUN, TIMEOUT_S, Collection
from tracediff.collect.record import check_torch, import_torch
from tracediff.collect.user_code import file_of
from tracediff.collect.variant import Variant, parse_variant
from tracediff.collect.workloads import NAMES, workload
from tracediff.errors import TracediffError, check_choice, did_you_mean, number_of, quoted, speaks_python, whole_number
from tracediff.process.temporary import temporary_file
from tracediff.write import StrPath, make_folder

EXAMPLES = """
examples:
  tracediff collect --workload vit --variant eager --variant compile -o out/
  tracediff collect train.py:make_step --variant eager --variant compile:mode=max-autotune -o out/
  tracediff collect train.py:make_step --variant eager --variant eager@again -o aa/ -- --batch 64
  torchrun --nproc-per-node 2 -m tracediff.collect train.py:make_step --variant eager -o out/
  tracediff collect --show out/
"""


COMMAND = "collect"
"""What errors of the whole command are about."""
SEE = "see tracediff collect --help"


class ShowRequest(NamedTuple):
    """A request to show the table of a collection.

    Attributes:
        out: folder of the collection. json_file, markdown_file: files to write, None to print the table.
    """

    out: Path
    json_file: str | None = None
    markdown_file: str | None = None


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as those of the other commands."""

    def parse_args(self, arguments: Sequence[str]) -> argparse.Namespace:  # type: ignore[override]
        """The options of ``arguments``.

        Raises:
            TracediffError: an unknown option, which suggests the nearest, or an invalid value.
        """
        options, unknown = self.parse_known_args(arguments)
        for name, value in vars(options).items():
            if value == "" or (isinstance(value, list) and "" in value):
                raise TracediffError(f"--{name.replace('_', '-')}", "is empty", "give a value, or leave the option out")
        if unknown:
            hint = did_you_mean(unknown[0].partition("=")[0], self._option_string_actions, SEE)
            raise TracediffError(COMMAND, f"unknown argument {unknown[0]!r}", hint)
        return options

    def error(self, message: str) -> NoReturn:
        """Raise the error of an invalid value.

        Raises:
            TracediffError: always.
        """
        raise TracediffError(COMMAND, message, SEE)


STAGES = ("eager", "compile:backend=eager", "compile:backend=aot_eager", "compile")
"""Each adds a stage of torch.compile to the one before it: capture, autograd, code generation."""


def parser() -> Parser:
    """The argument parser of ``tracediff collect``."""
    p = Parser(
        prog="tracediff collect",
        description="Run steps under torch.profiler, each run of each variant in its own process,\n"
        "and write one trace set per variant.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own_code = "run your own code: make_step(variant, …) returns a function that runs a step, or an object with step()"
    variants = (
        "run this variant (repeatable): eager, amp, compile[:mode=…,backend=…,dynamic,fullgraph], …, joined by +; "
        "VARIANT@NAME runs one under another name, its variant.label (default: eager, or those of the workload)"
    )

    def number(name: str, default: int, text: str, least: int = 1, metavar: str = "N") -> None:
        read = partial(_number, least=least)
        p.add_argument(f"--{name}", type=read, default=default, metavar=metavar, help=f"{text} (default: {default})")

    p.add_argument("target", nargs="?", metavar="FILE.py:make_step", help=own_code)
    p.add_argument("--workload", metavar="NAME", help="run this built-in workload instead of your own code; see --list")
    p.add_argument("--list", action="store_true", help="list the workloads with their default variants")
    p.add_argument(
        "--bisect-backend",
        action="store_true",
        help=f"collect {', '.join(STAGES)}, and say at which of them results or times turn",
    )
    p.add_argument("--list-backends", action="store_true", help="list the backends and modes of torch.compile here")
    p.add_argument(
        "--size",
        choices=("tiny", "small", "full"),
        default="small",
        help="select the size of the workload (default: small)",
    )
    p.add_argument("--variant", action="append", metavar="VARIANT", help=variants)
    p.add_argument("-o", "--out", metavar="DIR", help="write the collection to this folder")
    p.add_argument("--overwrite", action="store_true", help="replace the collection in DIR")
    number("attempts", ATTEMPTS, "collect a run that other processes disturbed again, up to N attempts")
    number("repeats", 5, "collect K runs per variant", metavar="K")
    number("timeout", TIMEOUT_S // 60, "end a run that takes longer, which is then a failed one", metavar="MINUTES")
    p.add_argument("--device", default=None, help="run on cpu or cuda (default: cuda if available)")
    number("threads", 1, "use N CPU threads per run")
    number("seed", 0, "seed the random numbers of every run", least=0)
    number("wait", 1, "run N steps before the profiler starts", least=0)
    number("warmup", 2, "run N warm-up steps of the profiler, which are not recorded", least=0)
    number("active", 5, "record N steps")
    number("timed", 10, "time N steps without the profiler")
    p.add_argument(
        "--detail",
        choices=("timing", "structure", "all"),
        default="timing",
        help="record shapes (timing); also stacks and modules (structure); also memory (all) (default: timing)",
    )
    p.add_argument("--show", metavar="DIR", help="show the table of the collection in DIR, and collect nothing")
    p.add_argument("--json", metavar="FILE", help="with --show: write the table as JSON (- is standard output)")
    p.add_argument("--markdown", metavar="FILE", help="with --show: write the table as Markdown (- is standard output)")
    p.add_argument("--annotate", choices=("fx", "modules"), help="record a scope for each FX node or nn.Module")
    p.add_argument(
        "--no-provenance",
        dest="provenance",
        action="store_false",
        help="leave out the log of torch.compile, with the lines of code of each kernel, which makes compiling slower",
    )
    return p


def _number(text: str, least: int) -> int:
    number = whole_number(text)
    if number is None or number < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of {least} or more, not {quoted(text)}")
    return number


def request_of(arguments: Sequence[str]) -> Collection | ShowRequest | None:
    """The request of a command line; None if it asks for a list, which is printed.

    Raises:
        TracediffError: the arguments are invalid or contradict each other, or the folder is not empty.
    """
    separator = list(arguments).index("--") if "--" in arguments else len(arguments)
    rest = list(arguments[separator + 1 :])
    options = parser().parse_args(arguments[:separator])
    if options.list:
        print(listing())
        return None
    if options.list_backends:
        print(backend_listing())
        return None
    if options.show:
        return ShowRequest(Path(options.show), options.json, options.markdown)
    if options.json or options.markdown:
        raise TracediffError("--json, --markdown", "only apply to the table of a collection", "add --show DIR")
    if (options.workload is None) == (options.target is None):
        reason = "needs either FILE.py:make_step or --workload NAME"
        raise TracediffError(COMMAND, reason, "give one of them; --list lists the workloads")
    if separator < len(arguments) and options.workload:
        raise TracediffError("--", "a workload takes no arguments after --; they are passed to make_step", "use --size")
    if options.out is None:
        raise TracediffError("-o", "was not given", "add -o DIR, the folder to write to")
    variants = _variants(options)
    check_torch(COMMAND)
    program = file_of(options.target) if options.target else None
    _check_backends(variants)
    device = options.device or ("cuda" if import_torch(COMMAND).cuda.is_available() else "cpu")
    out = Path(options.out)
    if not number_of("RANK", 0):  # for other ranks, rank 0 has already started to fill the folder
        _prepare(out, options.overwrite, program)
    settings = {k: getattr(options, k) for k in ("workload", "target", "size", *OF_RUN, "provenance")}
    settings |= {"device": device, "arguments": rest}
    if options.target:
        settings["size"] = None
    return Collection(out, variants, settings, options.repeats, options.attempts, timeout_s=60 * options.timeout)


def _variants(options: argparse.Namespace) -> list[Variant]:
    workload_variants: tuple[str, ...] = ()
    if options.bisect_backend and options.variant:
        raise TracediffError("--bisect-backend", "chooses the variants itself", "leave out --variant")
    texts = list(STAGES) if options.bisect_backend else options.variant
    if options.workload:
        selected = workload(options.workload)
        workload_variants, texts = selected.own, texts or list(selected.variants)
    variants = [parse_variant(text, workload_variants) for text in texts or ["eager"]]
    duplicates = [v.text for i, v in enumerate(variants) if v.folder in [w.folder for w in variants[:i]]]
    if duplicates:
        duplicate = duplicates[0]
        raise TracediffError(f"--variant {duplicate}", "given twice", f"name the second one, as in {duplicate}@again")
    return variants


def _check_backends(variants: Sequence[Variant]) -> None:
    """Check the backends of torch.compile, and inductor's options, before any process starts.

    Raises:
        TracediffError: one is unknown to the installed torch.
    """
    compiled = [v for v in variants if v.compiles and {"backend", "options"} & dict(v.options).keys()]
    if not compiled:
        return
    import torch
    from torch._inductor import list_options

    backends = torch._dynamo.list_backends(exclude_tags=())
    for variant in compiled:
        options = dict(variant.options)
        backend = options.get("backend", "inductor")
        subject, listing = f"--variant {variant.text}", "torch._inductor.list_options() lists them"
        check_choice(
            backend, backends, subject, f"torch.compile has no backend {quoted(backend)}", "see --list-backends"
        )
        for name in options.get("options", {}) if backend == "inductor" else ():
            check_choice(name, list_options(), subject, f"inductor has no option {quoted(name)}", listing)


def _prepare(out: Path, overwrite: bool, program: Path | None) -> None:
    """Make ``out`` an empty folder.

    Raises:
        TracediffError: it is none, and ``overwrite`` is not given, or it is not a collection, contains ``program`` or
            cannot be written.
    """
    if program and out.resolve() in program.resolve().parents:
        raise TracediffError(f"-o {out}", f"contains {program.name}, which is run", "give another folder")
    if out.exists() and not out.is_dir():
        raise TracediffError(out, "is a file, not a folder", "give a folder with -o")
    former = temporary_file(make_folder(out))
    try:
        entries = sorted(
            out.iterdir(), key=lambda entry: entry.name == "collection.json"
        )  # as long as it is a collection
        if all(entry.name == "collection.json" for entry in entries):  # one of which nothing was recorded
            return
        if not overwrite:
            raise TracediffError(out, "is not empty", "give another folder, or replace its contents with --overwrite")
        if not (out / "collection.json").exists() and not list(out.glob("*/manifest.json")):
            raise TracediffError(
                out,
                "is not a collection, so --overwrite does not replace it",
                "remove it yourself, or give another folder",
            )
        former.mkdir()
        for entry in entries:
            entry.rename(former / entry.name)
        shutil.rmtree(former)
    except OSError as error:
        reason = f"cannot be replaced ({(error.strerror or str(error)).lower()})"
        raise TracediffError(out, reason, "choose a writable folder") from None


def backend_listing() -> str:
    """The backends and the modes of the installed torch, each with the variant that uses it.

    Raises:
        TracediffError: torch is not installed.
    """
    check_torch(COMMAND)
    import torch
    from torch._inductor import list_mode_options

    backends = [f"compile:backend={name}" for name in torch._dynamo.list_backends(exclude_tags=())]
    modes = [f"compile:mode={name}" for name in list_mode_options()]
    return "\n".join(
        ["backends", *(f"  {b}" for b in backends), "modes of the backend inductor", *(f"  {m}" for m in modes)]
    )


def listing() -> str:
    """The list of workloads: per workload a line with its description and a line with its default variants."""
    lines = []
    for name in NAMES:
        module = workload(name)
        lines += [f"{name:24}{module.title}", f"{'':24}{'  '.join(module.variants)}"]
    return "\n".join(lines)


@speaks_python
def collect(
    target: str | None = None,
    *,
    out: StrPath,
    workload: str | None = None,
    variants: Sequence[str] = (),
    size: str = "small",
    repeats: int = 5,
    device: str | None = None,
    active: int = 5,
    timed: int = 10,
    detail: str = "timing",
    provenance: bool = True,
    overwrite: bool = False,
    arguments: Sequence[str] = (),
) -> list[Path]:
    """Record variants of a training step, every run in a process of its own; returns the folder of each variant, so
    that ``tracediff.compare(*tracediff.collect(…))`` compares two of them.

    Args:
        target: ``FILE.py:make_step`` of your own (docs/collect.md). workload: a built-in workload instead.
        out: folder of the collection.
        variants: such as "eager", "compile", "compile+amp"; by default eager, or those of the workload.
        size: of the workload: tiny, small or full. device: cpu or cuda, by default cuda if there is one.
        repeats: runs of each variant. active: steps recorded per run. timed: steps timed without the profiler.
        detail: timing, structure (stacks and modules) or all (memory as well).
        provenance: log what torch.compile compiles, with the lines of code of each kernel (docs/collect.md).
        overwrite: replace what is in ``out``. arguments: for your ``make_step``.

    Raises:
        TracediffError: the request makes no sense, or a variant failed.
    """
    options: dict[str, object] = {"workload": workload, "size": size if workload else None, "device": device}
    options |= {"detail": detail, "repeats": repeats, "active": active, "timed": timed, "out": os.fspath(out)}
    words = [*([target] if target else []), *(f"--variant={variant}" for variant in variants)]
    words += [f"--{name}={value}" for name, value in options.items() if value is not None]
    words += [] if provenance else ["--no-provenance"]
    words += ["--overwrite"] if overwrite else []
    request = request_of([*words, *(["--", *arguments] if arguments else [])])
    if not isinstance(request, Collection):
        raise TracediffError(COMMAND, "nothing to collect", "give a target or a workload")
    request.collect()
    for variant, reason in request.failed.items():
        raise TracediffError(variant, f"failed: {reason}", "run it with `tracediff collect` to see its output")
    return [Path(out) / variant.folder for variant in request.variants]
