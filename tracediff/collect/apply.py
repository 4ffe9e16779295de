"""Transform a model as a variant asks: memory format, capture, compilation."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from tracediff.errors import TracediffError

COMPILERS: dict[str, dict[str, str]] = {
    "compile": {},
    "aot_eager": {"backend": "aot_eager"},
    "cudagraphs": {"mode": "reduce-overhead"},
}
"""Variant part → its options of torch.compile; ``compile`` accepts further options."""

CAPTURES = ("script", "trace", "export", "onnx")
CHANGES = ("amp", "fp16", "tf32", "channels_last", "fx_fused", "reloaded", "compiled_optimizer")


def apply_variant(
    variant: str, parts: Collection[str], options: dict[str, Any], model: Any, example: tuple[Any, ...]
) -> Any:
    """The model with memory format, capture and compilation applied in this order, as ``parts`` say.

    Args:
        variant: text of the variant, for errors. options: keyword arguments of torch.compile.
        example: example inputs of the model.
    """
    import torch

    if "channels_last" in parts and isinstance(model, torch.nn.Module):
        model = model.to(memory_format=torch.channels_last)
    if "fx_fused" in parts:
        from torch.fx.experimental.optimization import fuse

        _require_inference(variant, "fx_fused", "folds batch norms into copies of the weights", model)
        model = fuse(model)
    for capture in CAPTURES:
        if capture in parts:
            model = _captured(variant, capture, model, example)
    if "reloaded" in parts:
        _require_inference(variant, "reloaded", "has parameters of its own", model)
        model = _reloaded(variant, model)
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    if any(part in COMPILERS for part in parts):
        model = torch.compile(model, **options)
    return model


def _require_inference(variant: str, part: str, why: str, model: Any) -> None:
    """Refuse what would silently train nothing.

    Raises:
        TracediffError: ``model`` is in training mode.
    """
    if getattr(model, "training", False):
        raise TracediffError(
            f"--variant {variant}",
            f"{part} {why}, so it cannot be trained",
            "call model.eval() before variant(model) if the step is inference, or leave the variant out",
        )


def _captured(variant: str, capture: str, model: Any, example: tuple[Any, ...]) -> Any:
    import torch

    if capture == "script":
        return torch.jit.script(model)
    if not example:
        raise TracediffError(
            f"--variant {variant}", f"{capture} needs example inputs", "call variant(model, *inputs) in make_step"
        )
    if capture == "trace":
        return torch.jit.trace(model, example)
    if capture == "export":
        return torch.export.export(model, example)
    _require_inference(variant, capture, "computes no gradients", model)
    return OnnxModel(variant, model, example)


def _reloaded(variant: str, model: Any) -> Any:
    """The captured model, written to a file and read back.

    Raises:
        TracediffError: it is none that can be written.
    """
    import torch

    with tempfile.TemporaryDirectory(prefix="tracediff-saved-") as folder:
        path = str(Path(folder) / "model.pt2")
        if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
            torch.jit.save(model, path)
            return torch.jit.load(path)
        if isinstance(model, torch.export.ExportedProgram):
            torch.export.save(model, path)
            return torch.export.load(path)
    if isinstance(model, OnnxModel):
        return model.reloaded()
    raise TracediffError(
        f"--variant {variant}",
        "reloaded applies to what another part of the variant captured",
        f"add one of {', '.join(CAPTURES)}, as in script+reloaded, or leave reloaded out",
    )


class OnnxModel:
    """A model exported to ONNX and run by onnxruntime, with onnxruntime's profiler enabled.

    Attributes:
        instances: all such models of this process.
        session: the onnxruntime session.
    """

    instances: ClassVar[list[OnnxModel]] = []

    def __init__(self, variant: str, model: Any, example: tuple[Any, ...]) -> None:
        import torch

        self._variant = variant
        self._folder = tempfile.TemporaryDirectory(prefix="tracediff-onnx-")
        self._path = Path(self._folder.name) / "model.onnx"
        self._provider = "CUDAExecutionProvider" if example[0].is_cuda else "CPUExecutionProvider"
        try:
            torch.onnx.export(model, example, str(self._path), dynamo=True)
            self.session = self._loaded(self._path)
        except ModuleNotFoundError as error:
            raise TracediffError(
                f"--variant {variant}", f"{error.name} is not installed", "pip install 'torch-tracediff[onnx]'"
            ) from None
        self._names = [i.name for i in self.session.get_inputs()]
        self.instances.append(self)

    def reloaded(self) -> OnnxModel:
        """This model, run from a file that onnx checked, read and wrote again."""
        import onnx

        onnx.checker.check_model(str(self._path), full_check=True)
        path = self._path.with_name("reloaded.onnx")
        onnx.save(onnx.load(self._path), path, save_as_external_data=True, location=f"{path.name}.data")
        self.session = self._loaded(path)
        return self

    def _loaded(self, path: Path) -> Any:
        """A session of onnxruntime that runs the file ``path``.

        Raises:
            TracediffError: it would not run on the device of the example.
        """
        import onnxruntime
        import torch

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(self._folder.name) / "onnxruntime")
        available = self._provider in onnxruntime.get_available_providers()
        session = onnxruntime.InferenceSession(str(path), options, providers=[self._provider] if available else [])
        if self._provider not in session.get_providers():  # it falls back to the CPU without a word
            raise TracediffError(
                f"--variant {self._variant}",
                f"onnxruntime does not run on this device: it has no {self._provider} that works",
                "pip install onnxruntime-gpu for the CUDA version of torch, or use --device cpu",
            )
        return session

    def __call__(self, *inputs: Any) -> Any:
        """Run the session in a record_function scope, because torch records nothing inside the session."""
        import torch

        with torch.profiler.record_function("onnxruntime"):
            outputs = self.session.run(
                None, {name: x.detach().cpu().numpy() for name, x in zip(self._names, inputs, strict=True)}
            )
        return torch.from_numpy(outputs[0])

    def save_profile(self, path: Path) -> None:
        """Stop onnxruntime's profiler and move its Chrome trace to ``path``."""
        shutil.move(self.session.end_profiling(), path)


def check_compiler(variant: str, options: dict[str, Any]) -> None:
    """Check that inductor, if it is the backend, finds a C++ compiler, with which it compiles for the CPU.

    Raises:
        TracediffError: it finds none.
    """
    if options.get("backend", "inductor") != "inductor":
        return
    from torch._inductor.config import cpp

    compilers = cpp.cxx if isinstance(cpp.cxx, list | tuple) else (cpp.cxx,)
    if not any(c and shutil.which(c) for c in (*compilers, "g++", "clang++")):
        raise TracediffError(
            f"--variant {variant}",
            "torch.compile needs a C++ compiler and found none",
            "install g++ (Debian: apt-get install g++), or set CXX",
        )
