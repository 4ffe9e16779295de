"""The frame of every page: navigation, selection of sets, filters, and the status line."""

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from tracediff_dashboards.pages import PAGES, components
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.reading.sets import MOST_BYTES, PREFIX, is_choosable
from tracediff_dashboards.state.view import View

POLL_MS = 400
FILTERED_BY = ("phase", "family", "module", "rank", "test-rank")
"""Filters whose options depend on the sets."""
UNFILTERED = (
    "Device, phase, family and module filter the changes and the tree, and highlight their work on the timeline. The "
    "verdict, why, the step time, ranks, memory and health always cover all work."
)
LIST_PX = 420
"""Height of a dropdown list."""


def shell(theme: str) -> Any:
    """The layout of the app, which callbacks fill.

    Args:
        theme: light, dark, or auto for the setting of the user's system.
    """
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="theme", storage_type="local"),
            dcc.Store(id="asked-theme", data=theme),
            dcc.Store(id="dropped"),
            dcc.Store(id="ready", data=0),
            dcc.Store(id="shown"),
            dcc.Interval(id="poll", interval=POLL_MS, disabled=True),
            html.A("Skip to the content", href="#page", className="skip"),
            html.Header(
                [
                    html.Strong("tracediff"),
                    html.Nav(id="nav", **components.attributes(aria_label="Pages")),
                    html.Button("Copy link", id="copy", title="Copy a link to this view"),
                    html.Button("Dark", id="theme-button"),
                ]
            ),
            _sets(),
            html.Div(
                [html.Div(id="status", role="status"), html.Button("Cancel", id="cancel", hidden=True)],
                className="status",
            ),
            html.Main(id="page", tabIndex=-1),
            html.Div(dcc.Graph(), hidden=True),  # so that the browser loads plotly.js while the sets are read
        ]
    )


def _sets() -> Any:
    drop = dcc.Upload(
        "drop or choose two traces",
        id="upload",
        multiple=True,
        max_size=MOST_BYTES,
        className="drop",
        className_active="drop active",
    )
    return html.Section(
        [
            _labelled("control", clearable=False, placeholder="choose a set"),
            _ranks("rank"),
            html.Button(
                "⇄",
                id="swap",
                title="Swap control and test",
                **components.attributes(aria_label="Swap control and test"),
            ),
            _labelled("test", clearable=False, placeholder="choose a set"),
            _ranks("test-rank", placeholder="the same"),
            html.Div(
                drop,
                className="field upload",
                title=f"Up to {MOST_BYTES >> 20} MB each; a single file replaces the test",
            ),
            _filters(),
            html.Div(id="notice", role="alert"),
        ],
        className="sets",
        **components.attributes(aria_label="Sets"),
    )


def _filters() -> Any:
    devices = [{"label": "GPU", "value": "gpu"}, {"label": "CPU", "value": "cpu"}]
    steps = dcc.Input(
        id="steps", type="text", debounce=True, placeholder="e.g. 5..10", maxLength=24, autoComplete="off"
    )
    fields = html.Div(
        [
            _labelled("device", options=devices),
            *(_labelled(key, multi=True) for key in ("phase", "family", "module")),
            html.Div([html.Label("steps", htmlFor="steps"), steps], className="field small"),
            html.Button("Clear", id="clear", title="Clear all filters"),
            html.P(UNFILTERED, id="unfiltered", className="facts", hidden=True),
        ],
        className="filters",
        role="group",
        **components.attributes(aria_label="Filters"),
    )
    return html.Details([html.Summary("Filters and steps"), fields], id="filters", className="fold")


def _ranks(key: str, placeholder: str = "all") -> Any:
    """The ranks of a side, beside its set; hidden of a set with one rank."""
    choice = components.choice(key, "rank", maxHeight=LIST_PX, multi=True, placeholder=placeholder)
    return html.Div(choice, id=f"{key}-field", className="field small", hidden=True)


def _labelled(key: str, placeholder: str = "all", **options: Any) -> Any:
    """A dropdown of every page."""
    choice = components.choice(key, key, maxHeight=LIST_PX, placeholder=placeholder, **options)
    return html.Div(choice, className="field")


def links(current: str | None, view: View) -> list[Any]:
    """Links to all pages, with the same sets and filters."""
    query = view.query()
    return [
        dcc.Link(
            title, href=f"/{'' if page == 'overview' else page}{query}", className="current" if page == current else ""
        )
        for page, (title, _) in PAGES.items()
    ]


def set_options(names: Sequence[str], view: View) -> list[dict[str, str]]:
    """The options of control and test: the known sets, and those that the URL names."""
    every = dict.fromkeys([*names, *(name for name in (view.control, view.test) if name)])
    return [{"label": _set_label(name), "value": name} for name in every if is_choosable(name)]


def _set_label(name: str) -> str:
    if name.startswith(f"{PREFIX}:"):
        return f"{name.partition('/')[2]} ({PREFIX})"
    return "(the whole folder)" if name == "." else name[:200]


def filter_options(
    view: View, context: PageContext | None = None, ranks: tuple[Sequence[int], Sequence[int]] = ((), ())
) -> list[Any]:
    """The options of FILTERED_BY: the values that occur in the comparison, ``ranks`` of the sides, and what the URL
    names.
    """
    filters = view.filters
    phases, families, modules = set(filters.phase), set(filters.family), set(filters.module)
    if context is not None:
        phases |= {member.phase for member in context.members}
        families |= {member.family for member in context.members} | {op.family for op in context.whole.ops}
        modules |= context.module_paths
    values_of_filters = (phases, families, modules, {*ranks[0], *filters.rank}, {*ranks[1], *filters.test_rank})
    return [
        [{"label": str(v)[:200], "value": v} for v in sorted(values) if is_choosable(str(v))]
        for values in values_of_filters
    ]
