"""What modules are called: by class, numbered among siblings of one class in the order that the profiler numbered them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

INSTANCE = re.compile(r"^nn\.Module: (?P<cls>.*?)(?:_(?P<k>\d+))?$")


def module_labels(modules: Iterable[tuple[int, int, str]]) -> dict[int, str]:
    """Node → ``Linear[1]``, or ``Linear`` where its parent has one of that class only.

    Args:
        modules: (node, parent node, name as recorded) of each.
    """
    labels: dict[int, str] = {}
    classes: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for node, parent, name in modules:
        match = INSTANCE.match(name)
        labels[node] = match["cls"] if match else name.partition(":")[2] or name
        if match:
            classes[parent, labels[node]].append((int(match["k"] or 0), node))
    for siblings in classes.values():
        if len(siblings) > 1:
            for ordinal, (_, node) in enumerate(sorted(siblings)):
                labels[node] += f"[{ordinal}]"
    return labels
