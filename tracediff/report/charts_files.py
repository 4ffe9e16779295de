"""Charts → files: HTML that opens offline, JSON, and images through kaleido."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from tracediff import charts
from tracediff.charts.theme import NO_BUTTONS, caption, height_of
from tracediff.errors import TracediffError, quoted
from tracediff.report.page.html import render
from tracediff.write import StrPath, make_folder, write_bytes, write_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison, Scaled

FRAGMENT = "fragment"
IMAGE_FORMATS = ("png", "svg", "pdf")
SCRIPT = "plotly.min.js"
"""Written once into the folder; every page refers to it."""
WIDTH = 1000
"""Width of images in pixels; PNG has twice as many."""
CONFIG = {"responsive": True, "displaylogo": False, "typesetMath": False, "modeBarButtonsToRemove": list(NO_BUTTONS)}
"""Configuration of plotly.js: pages send no data."""


def write_charts(
    subject: Scaled,
    folder: StrPath,
    formats: Sequence[str] = (),
    theme: str = "light",
    names: Sequence[str] = charts.NAMES,
) -> list[Path]:
    """Write NAME.html and NAME.json of each chart into ``folder``, and of ``formats`` an image, or NAME.fragment.html
    to be put into a page.

    Returns:
        The files written, without the script that all pages share.

    Raises:
        TracediffError: the folder cannot be written, or images cannot be made here.
    """
    check_formats(formats)
    return write_figures({name: getattr(charts, name)(subject, theme=theme) for name in names}, folder, formats)


def write_figures(figures: dict[str, go.Figure], folder: StrPath, formats: Sequence[str] = ()) -> list[Path]:
    """Write each of ``figures`` under its name, as `write_charts` does.

    Raises:
        TracediffError: as `write_charts`.
    """
    from plotly.offline import get_plotlyjs

    root = make_folder(folder)
    write_text(root / SCRIPT, get_plotlyjs())
    written = []
    for name, figure in figures.items():
        write_text(root / f"{name}.html", page(figure, name))
        write_text(root / f"{name}.json", figure.to_json())
        written += [root / f"{name}.html", root / f"{name}.json"]
        if FRAGMENT in formats:
            write_text(root / f"{name}.fragment.html", fragment(figure, name))
            written.append(root / f"{name}.fragment.html")
    images = [image_format for image_format in formats if image_format != FRAGMENT]
    return written + (_write_images(figures, root, images) if images else [])


def fragment(figure: go.Figure, name: str) -> str:
    """``figure`` as a ``<div>`` to put into a page that has loaded plotly.js; its id is ``name``."""
    text: str = figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=CONFIG)
    return text


def page(figure: go.Figure, name: str) -> str:
    """``figure`` as a page of its own beside SCRIPT."""
    return render(
        "chart.html.jinja",
        name=name,
        script=SCRIPT,
        background=figure.layout.template.layout.paper_bgcolor,
        fragment=Markup(fragment(figure, name)),
    )


def check_formats(formats: Sequence[str]) -> None:
    """Check, before the work begins, that charts can be written in ``formats``, which ``--images`` asked for.

    Raises:
        TracediffError: an unknown format, or kaleido is not installed.
    """
    for image_format in formats:
        if image_format not in (*IMAGE_FORMATS, FRAGMENT):
            raise TracediffError(
                "--images",
                f"unknown format {quoted(image_format)}",
                f"choose from {', '.join((*IMAGE_FORMATS, FRAGMENT))}",
            )
    images = [image_format for image_format in formats if image_format != FRAGMENT]
    if images and find_spec("kaleido") is None:
        raise TracediffError(
            f"--images {images[0]}",
            "images need kaleido, which is not installed",
            "pip install 'torch-tracediff[images]'",
        )


def write_images(
    comparison: Comparison, folder: StrPath, names: Sequence[str], image_format: str
) -> dict[str, tuple[Path, str]]:
    """Chart → (its image in ``folder``, its title) of those of ``names`` that have something to show.

    Raises:
        TracediffError: the folder cannot be written, or images cannot be made here.
    """
    check_formats([image_format])
    figures = {name: getattr(charts, name)(comparison) for name in names}
    figures = {name: figure for name, figure in figures.items() if figure.data}
    written = _write_images(figures, make_folder(folder), [image_format])
    return {name: (path, caption(figure)[0]) for (name, figure), path in zip(figures.items(), written, strict=True)}


def _write_images(figures: dict[str, go.Figure], root: Path, formats: Sequence[str]) -> list[Path]:
    written = []
    with _browser():
        for name, figure in figures.items():
            for image_format in dict.fromkeys(formats):
                target = root / f"{name}.{image_format}"
                write_bytes(target, image(figure, image_format))
                written.append(target)
    return written


def image(figure: go.Figure, image_format: str) -> bytes:
    """``figure`` as PNG, SVG or PDF.

    Raises:
        TracediffError: no browser is found, or it cannot draw.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # plotly's: that a running browser keeps its settings, which is wanted
            content = figure.to_image(
                format=image_format, width=WIDTH, height=height_of(figure), scale=2 if image_format == "png" else 1
            )
    except Exception as error:  # kaleido's and choreographer's errors have no common class
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TracediffError(
            "images", f"cannot be drawn ({reason})", "install Chromium or Chrome (Debian: apt-get install chromium)"
        ) from None
    return content


@contextmanager
def _browser() -> Iterator[None]:
    """One browser for all images, without MathJax, which kaleido would load from the network; kaleido before 1.1
    starts one per image.
    """
    kaleido = import_module("kaleido")
    if not hasattr(kaleido, "start_sync_server"):
        yield
        return
    try:
        kaleido.start_sync_server(silence_warnings=True, mathjax=False)
    except Exception:  # the first image reports it, with a remedy
        yield
        return
    try:
        yield
    finally:
        kaleido.stop_sync_server(silence_warnings=True)
