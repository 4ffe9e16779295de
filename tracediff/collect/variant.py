"""`Variant`: one way to run a step, parsed from text such as ``eager``, ``compile:mode=max-autotune+amp`` or
``eager@again``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from tracediff.collect.apply import CAPTURES, CHANGES, COMPILERS, applied
from tracediff.errors import TracediffError

BUILT_IN = ("eager", *COMPILERS, *CAPTURES, *CHANGES)
OPTIONS = {"mode": str, "backend": str, "dynamic": bool, "fullgraph": bool}
"""Options of ``compile``: ``compile:mode=max-autotune,dynamic=true``; a bare word is the mode, or the name of a
flag.
"""

PART = re.compile(r"^(?P<name>[\w-]+)(?::(?P<options>[\w=,.-]+))?$")


@dataclass(frozen=True)
class Variant:
    """One way to run a step.

    Attributes:
        text: as given, with its ``@label``.
        parts: the names joined by ``+``, in order.
        options: of torch.compile.
    """

    text: str
    parts: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def folder(self) -> str:
        """The name of its folder in a collection."""
        return re.sub(r"[^\w@=.+-]", "_", self.text)

    def has(self, part: str) -> bool:
        """Whether ``part`` is one of its parts."""
        return part in self.parts

    @property
    def compiles(self) -> bool:
        """Whether it runs through torch.compile."""
        return any(part in COMPILERS for part in self.parts)

    def choice(self, *names: str) -> str:
        """Which of a workload's own ways ``names`` this variant asks for: the first where it asks for none."""
        return next((part for part in self.parts if part in names), names[0])

    def autocast(self, device: str) -> AbstractContextManager[Any]:
        """The bf16 autocast context of ``amp``, else one that does nothing. Put forward and loss inside."""
        if not self.has("amp"):
            return nullcontext()
        import torch

        context: AbstractContextManager[Any] = torch.autocast(device, dtype=torch.bfloat16)
        return context

    def __call__(self, model: Any, *example: Any) -> Any:
        """``model`` (a module or function) as this variant runs it.

        Args:
            example: inputs, needed by trace, export, onnx and fx_fused.

        Raises:
            TracediffError: the variant cannot capture this model without example inputs, or a package is missing.
        """
        return applied(self.text, self.parts, dict(self.options), model, example)


def parse_variant(text: str, own: Iterable[str] = ()) -> Variant:
    """The variant behind ``text``.

    Args:
        own: names that the workload adds.

    Raises:
        TracediffError: an unknown name or option; the message lists the known ones.
    """
    own = tuple(own)
    parts: list[str] = []
    options: dict[str, Any] = {}
    for part in text.partition("@")[0].split("+"):
        match = PART.match(part)
        name = match["name"] if match else part
        if not match or name not in (*BUILT_IN, *own):
            raise TracediffError(
                f"--variant {text}",
                f"unknown variant {name!r}",
                f"known are {', '.join((*BUILT_IN, *own))}, joined by +",
            )
        if match["options"]:
            if name != "compile":
                raise TracediffError(
                    f"--variant {text}", f"{name} takes no options", "only compile does: compile:mode=max-autotune"
                )
            options |= dict(_option(text, option) for option in match["options"].split(","))
        options |= COMPILERS.get(name, {})
        parts.append(name)
    return Variant(text, tuple(parts), tuple(sorted(options.items())))


def _option(text: str, option: str) -> tuple[str, Any]:
    name, mark, value = option.partition("=")
    if not mark:
        return (name, True) if OPTIONS.get(name) is bool else ("mode", name)
    if name not in OPTIONS:
        raise TracediffError(
            f"--variant {text}", f"unknown option {name!r} of compile", f"known are {', '.join(OPTIONS)}"
        )
    if OPTIONS[name] is bool:
        if value.lower() not in ("true", "false", "1", "0"):
            raise TracediffError(f"--variant {text}", f"{name} is true or false, not {value!r}", f"write {name}=true")
        return name, value.lower() in ("true", "1")
    return name, value


Step = Callable[[], Any]


@dataclass
class Task:
    """What a workload or a user's ``make_step`` gives to be measured.

    Attributes:
        step: runs one step; called without arguments.
        model: the module behind it, for module names and annotations; may be None.
    """

    step: Step
    model: Any = None


def task_of(made: Any, subject: str) -> Task:
    """What ``make_step`` returned, as a task: a callable, or an object with ``step()`` and maybe ``model``.

    Raises:
        TracediffError: it is neither.
    """
    if isinstance(made, Task):
        return made
    step = getattr(made, "step", None)
    if callable(step):
        return Task(step, getattr(made, "model", None))
    if callable(made):
        return Task(made)
    raise TracediffError(
        subject,
        f"make_step returned {type(made).__name__}, which is no step",
        "return a callable, or an object with step()",
    )
