"""Paths of modules without the numbers of their instances."""

from __future__ import annotations

import re

NUMBER = re.compile(r"\[\d+\]|(?<=\w)_\d+(?=/|$)|\.\d+(?=[./]|$)")
"""What tells instances apart: ``Layer[3]``, the profiler's ``Layer_3``, and ``layers.3`` of qualified names."""


def every_instance(path: str) -> str:
    """``Encoder/Layer[*]/Attention`` for ``Encoder/Layer[3]/Attention``."""
    return NUMBER.sub(lambda match: {"[": "[*]", "_": "_*", ".": ".*"}[match[0][0]], path)


def outermost(path: str, depth: int | None) -> str:
    """The first ``depth`` modules of ``path``; all for None."""
    return "/".join(path.split("/")[:depth])
