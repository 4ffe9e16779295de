"""Notebooks as pages: executed in the build, since they are stored without outputs. A failing cell ends the build."""

import json
import os
from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from plotly.offline import get_plotlyjs

QUIET = ["--IPKernelApp.log_level=40"]
"""The kernel reports errors only: it listens on the loopback interface, for these seconds."""
PLOTLY = "application/vnd.plotly.v1+json"
SCRIPT = "notebooks/plotly.min.js"
DRAW = """<div class="chart" id="{id}"></div>
<script src="plotly.min.js"></script>
<script>Plotly.newPlot("{id}", {figure}, {layout}, {{displayModeBar: false, responsive: true}});</script>"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every notebook, and the script of its charts."""
    for path in sorted((Path(config.docs_dir) / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=_page(path)))
    files.append(File.generated(config, SCRIPT, content=get_plotlyjs()))
    return files


@cache
def _page(path: Path) -> str:
    """The Markdown of an executed notebook."""
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"  # figures as data, not each with its own plotly.js
    notebook = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=300, resources=folder, extra_arguments=QUIET).execute()
    ids = map("chart{}".format, count())
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell, ids))


def _parts(cell: Any, ids: Iterator[str]) -> Iterator[str]:
    """The Markdown of a cell and of what it displays."""
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        yield from _displayed(output, ids)


def _displayed(output: Any, ids: Iterator[str]) -> Iterator[str]:
    data = output.get("data", {})
    if PLOTLY in data:
        figure = {key: json.dumps(data[PLOTLY][key]).replace("<", r"\u003c") for key in ("data", "layout")}
        yield DRAW.format(id=next(ids), figure=figure["data"], layout=figure["layout"])
    elif "text/html" in data:
        yield f'<div class="output">\n{_on_one_line(data["text/html"])}\n</div>'
    elif text := output.get("text") or data.get("text/plain"):
        yield f'<div class="output"><pre>{escape(text.strip())}</pre></div>'


def _on_one_line(html: str) -> str:
    """HTML that Markdown passes on as one block: without empty lines, after which it would read Markdown again."""
    return "\n".join(line.strip() for line in html.splitlines() if line.strip())
