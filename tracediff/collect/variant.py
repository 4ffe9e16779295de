"""`Variant`: one way to run a step, parsed from text such as ``eager``, ``compile:mode=max-autotune+amp`` or
``eager@again``.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from tracediff.collect.apply import CAPTURES, CHANGES, COMPILERS, apply_variant
from tracediff.errors import TracediffError, check_choice

BUILT_IN = ("eager", *COMPILERS, *CAPTURES, *CHANGES)
OPTIONS = {"mode": str, "backend": str, "dynamic": bool, "fullgraph": bool, "disable": bool}
"""Options of ``compile``, as in ``compile:mode=max-autotune,dynamic=true``; a word alone is a mode or a flag."""
BACKEND_OPTION = "options."
"""Prefix of an option of the backend, as in ``compile:options.epilogue_fusion=false``."""

SCALE = 2.0**10
"""Of the loss with ``fp16``, at first; torch's 2**16 makes the first gradients infinite, and steps that the optimizer
omits are less work.
"""
UNSAFE = re.compile(r"[^\w@=.+-]")
"""Characters that the name of a folder does not have."""
PART = re.compile(r"^(?P<name>[\w-]+)(?::(?P<options>[\w=,.-]+))?$")


@dataclass(frozen=True)
class Variant:
    """One way to run a step.

    Attributes:
        text: as given, including ``@label``.
        parts: the names joined by ``+``, in order.
        options: keyword arguments of torch.compile.
        models: what was transformed so far, before it was.
        captured: the graphs that became of them, where they were captured or fused.
        optimizers: those whose steps are made by `update`.
    """

    text: str
    parts: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()
    models: list[Any] = field(default_factory=list, compare=False, repr=False)
    captured: list[Any] = field(default_factory=list, compare=False, repr=False)
    optimizers: list[Any] = field(default_factory=list, compare=False, repr=False)

    @property
    def folder(self) -> str:
        """Name of the variant's folder in a collection."""
        return UNSAFE.sub("_", self.text)

    @property
    def label(self) -> str:
        """What follows ``@``, such as the version of your own code; empty without."""
        return self.text.partition("@")[2]

    def has(self, part: str) -> bool:
        """Whether ``part`` is one of its parts."""
        return part in self.parts

    @property
    def compiles(self) -> bool:
        """Whether it uses torch.compile."""
        return any(part in (*COMPILERS, "compiled_optimizer") for part in self.parts)

    def choice(self, *names: str) -> str:
        """The one of a workload's own variants ``names`` that this variant selects, else the first."""
        return next((part for part in self.parts if part in names), names[0])

    def autocast(self, device: str) -> AbstractContextManager[Any]:
        """A context for forward and loss: autocast to bfloat16 with ``amp``, to float16 with ``fp16``, else one without
        effect.
        """
        if not (self.has("amp") or self.has("fp16")):
            return nullcontext()
        import torch

        dtype = torch.float16 if self.has("fp16") else torch.bfloat16
        return torch.autocast(device.partition(":")[0], dtype=dtype)

    def update(self, optimizer: Any, device: str) -> Callable[[Any], None]:
        """A function that, given the loss, computes the gradients and steps ``optimizer``: with ``compiled_optimizer``
        compiled, with ``fp16`` through a GradScaler, so that small gradients are not rounded to 0.
        """
        import torch

        self.optimizers.append(optimizer)
        if self.has("compiled_optimizer"):
            optimizer.step = torch.compile(optimizer.step)
        scaler = torch.amp.GradScaler(device.partition(":")[0], init_scale=SCALE) if self.has("fp16") else None

        def update(loss: Any) -> None:
            if scaler is None:
                loss.backward()
                optimizer.step()
                return
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

        return update

    def __call__(self, model: Any, *example: Any) -> Any:
        """``model`` (a module or function), transformed as this variant asks.

        Args:
            example: example inputs, needed by trace, export and onnx.

        Raises:
            TracediffError: the variant cannot capture this model without example inputs, or a package is missing.
        """
        self.models.append(model)
        transformed = apply_variant(self.text, self.parts, dict(self.options), model, example)
        if any(self.has(part) for part in (*CAPTURES, "fx_fused")):
            self.captured.append(getattr(transformed, "_orig_mod", transformed))  # of a compiled one, what is compiled
        return transformed


def parse_variant(text: str, workload_variants: Iterable[str] = ()) -> Variant:
    """Parse a variant.

    Args:
        workload_variants: names of the workload's own variants.

    Raises:
        TracediffError: a name or an option is unknown; the message lists the known ones.
    """
    valid_names = (*BUILT_IN, *workload_variants)
    parts = []
    options: dict[str, Any] = {}
    for part in text.partition("@")[0].split("+"):
        match = PART.match(part)
        name = match["name"] if match else part
        own = f"in a step of your own, eager@{name} has the variant.label {name!r}"
        listed = f"valid are {', '.join(valid_names)}, joined by +; {own}"
        check_choice(name, valid_names, f"--variant {text}", f"unknown variant {name!r}", listed)
        if match and match["options"]:
            if name != "compile":
                raise TracediffError(
                    f"--variant {text}",
                    f"{name} takes no options",
                    "give options to compile only, as in compile:mode=max-autotune",
                )
            for option in match["options"].split(","):
                _add_option(options, text, option)
        options |= COMPILERS.get(name, {})
        parts.append(name)
    return Variant(text, tuple(parts), tuple(sorted(options.items())))


def _add_option(options: dict[str, Any], text: str, option: str) -> None:
    """Add what ``option`` says to the keyword arguments of torch.compile."""
    name, separator, value = option.partition("=")
    if name.startswith(BACKEND_OPTION):
        options["options"] = {**options.get("options", {}), name.removeprefix(BACKEND_OPTION): _of_backend(value)}
    elif not separator:
        options |= {name: True} if OPTIONS.get(name) is bool else {"mode": name}
    else:
        listed = f"valid are {', '.join(OPTIONS)}, options.NAME"
        check_choice(name, OPTIONS, f"--variant {text}", f"unknown option {name!r} of compile", listed)
        options[name] = _flag(text, name, value) if OPTIONS[name] is bool else value


def _flag(text: str, name: str, value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0"):
        raise TracediffError(f"--variant {text}", f"{name} is true or false, not {value!r}", f"write {name}=true")
    return value.lower() in ("true", "1")


def _of_backend(value: str) -> Any:
    """The value of a backend's option: true if none is given, a number, or a word."""
    if value.lower() in ("", "true", "false"):
        return value.lower() != "false"
    return int(value) if value.isdecimal() and value.isascii() and len(value) < 19 else value


Step = Callable[[], Any]


@dataclass
class Task:
    """A step to measure, from a workload or a user's ``make_step``.

    Attributes:
        step: function without arguments that runs one step.
        model: the module, for module names and annotations; may be None.
        items: examples that a step handles, such as images, for items per second; may be None.
    """

    step: Step
    model: Any = None
    items: int | None = None
