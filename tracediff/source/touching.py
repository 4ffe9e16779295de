"""`ChangedCode`: which changed lines the changed work runs for (docs/source.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

Part = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class Touching:
    """Changed lines that changed work runs for."""

    file: Annotated[str, Meta(description="path in the repository")]
    name: Annotated[str, Meta(description="the function, class or statement that changed; of control if test has none")]
    first: Annotated[int, Meta(description="its first changed line")]
    last: Annotated[int, Meta(description="its last changed line")]
    text: Annotated[str, Meta(description="the lines from first to last, at most 20 of them")]
    lines: Annotated[int, Meta(description="how many of its lines changed; 0 where lines were only taken out")]
    commit: Annotated[str, Meta(description="the latest commit that changed them, abbreviated; empty where unknown")]
    part: Annotated[Part, Meta(description="of the change of all changed work, the part that they touch")]
    distance: Annotated[int, Meta(description="references between them and the work's own code: 0 where that changed")]


@dataclass(frozen=True, kw_only=True)
class ChangedCode:
    """Which changed lines the changed work runs for."""

    commits: Annotated[tuple[str, str], Meta(description="of control and test")]
    touching: Annotated[tuple[Touching, ...], Meta(description="the largest part first")] = ()
    untouched: Annotated[int, Meta(description="changed definitions that no changed work runs for")] = 0
    other_files: Annotated[tuple[str, ...], Meta(description="changed files that are not Python")] = ()
    changed_work: Annotated[
        Part,
        Meta(description="of all change, the part of work that is other work or takes significantly longer or shorter"),
    ] = 0.0
    unplaced: Annotated[
        Part, Meta(description="of the change of all changed work, the part whose line is not known")
    ] = 0.0
    note: Annotated[str, Meta(description="why nothing can be told; empty otherwise")] = ""
