"""Labels of modules: the class, with an ordinal among siblings of the same class in the profiler's order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

INSTANCE = re.compile(r"^nn\.Module: (?P<cls>.*?)(?:_(?P<k>\d{1,18}))?$")


@lru_cache(maxsize=1 << 16)
def _class_and_number(name: str) -> tuple[str, int | None]:
    """``nn.Module: Linear_3`` → (Linear, 3); None if the name is not an instance of a class."""
    match = INSTANCE.match(name)
    return (match["cls"], int(match["k"] or 0)) if match else (name.partition(":")[2] or name, None)


def module_labels(modules: Iterable[tuple[int, int, str]]) -> dict[int, str]:
    """Node → ``Linear[1]``, or ``Linear`` if it is the only child of that class.

    Args:
        modules: (node, parent node, name as recorded) of each.
    """
    labels: dict[int, str] = {}
    classes: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for node, parent, name in modules:
        labels[node], number = _class_and_number(name)
        if number is not None:
            classes[parent, labels[node]].append((number, node))
    for siblings in classes.values():
        if len(siblings) > 1:
            for ordinal, (_, node) in enumerate(sorted(siblings)):
                labels[node] += f"[{ordinal}]"
    return labels
