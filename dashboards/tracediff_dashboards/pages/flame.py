"""The page of the flame graph, and the table's rows of the box that is zoomed."""

import re
from typing import Any

from dash import dcc, html

from tracediff import bounds
from tracediff.report.page.script_data import comparison_flame
from tracediff_dashboards.pages import components
from tracediff_dashboards.pages.details import details
from tracediff_dashboards.pages.rows import find_row, row_named
from tracediff_dashboards.reading.comparisons import PageContext

ANY_INSTANCE = re.escape("[*]")
INSTANCE, LAST_INSTANCE = re.compile(r"\[\d+\]"), re.compile(r"\[(\d+|\*)\]$")


def page(context: PageContext) -> list[Any]:
    """The components: the flame graph, which its script draws, and the panel of the zoomed box."""
    graph = comparison_flame(context.comparison)
    if graph.data is None:
        return [html.H1("Flame graph"), components.missing(graph.title)]
    caption = html.Figcaption([html.Strong(graph.title), html.Span(graph.subtitle)])
    return [
        html.H1("Flame graph"),
        html.Figure([caption, html.Div(id="flame-graph", className="flame")]),
        html.Div(id="flame-row", className="details", hidden=True, **components.attributes(aria_live="polite")),
        dcc.Store(id="flame-data", data={"graph": graph.data, "view": context.view.flame.data}),
        dcc.Store(id="flame-view"),
    ]


def zoomed(context: PageContext, kind: str, name: str) -> list[Any]:
    """Links from a box to its rows and to the work of its module, and the details of its first row."""
    if kind == "module":
        return _module(context)
    names = [piece for side in name.split(" → ") for piece in side.split(" + ")] if kind == "kernel" else [name]
    linked = [(each, row) for each in names[: bounds.FLAME_LINKS] if (row := row_named(context.comparison, each))]
    if not linked:
        return []
    links = [
        html.P(components.row_link(context, *row, ["Open ", components.name(each), " in Changes"]))
        for each, row in linked
    ]
    tab, key = linked[0][1]
    first = find_row(context.comparison, tab, key)
    in_tab = context.replace(view=context.view.replace(tab=tab, row=key))
    return [*links, *(details(in_tab, first) if first is not None else [])]


def _module(context: PageContext) -> list[Any]:
    """A link to the same page of the work of the zoomed module, or of all instances that are one box."""
    paths = _modules(context)
    if not paths:
        return []
    filters = context.view.filters.replace(module=paths)
    address = context.address("changes", filters=filters, row="")
    return [html.P(dcc.Link("Show the changes of this module only", href=address))]


def _modules(context: PageContext) -> tuple[str, ...]:
    """The paths of modules that the zoomed path names; none where they are too many, or in the inverted graph."""
    if context.view.flame.inverted:
        return ()
    prefixes = context.module_paths
    classes = {INSTANCE.sub("", piece) for path in prefixes for piece in path.split("/")}
    labels = [label for label in context.view.flame.zoom if LAST_INSTANCE.sub("", label) in classes]
    pattern = "/".join(re.escape(label).replace(ANY_INSTANCE, r"(\[\d+\])?") for label in labels)
    paths = sorted(path for path in prefixes if re.fullmatch(pattern, path))
    return tuple(paths) if len(paths) <= bounds.FILTERED_MODULES else ()
