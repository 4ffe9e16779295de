"""`Charted`: what every result with charts can do with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tracediff.charts.accessor import Charts


class Charted(ABC):
    """A result whose charts can be embedded in a page or drawn as images."""

    @property
    @abstractmethod
    def charts(self) -> Charts:
        """The plotly figures of this result."""

    def chart_fragment(self, name: str, **arguments: Any) -> str:
        """A chart as a ``<div>`` with its script, for a page that has loaded plotly.js; its id is ``name``.

        Args:
            arguments: those of the chart, such as ``theme="dark"``.
        """
        from tracediff.report.charts_files import fragment

        return fragment(getattr(self.charts, name)(**arguments), name)

    def chart_image(self, name: str, image_format: str = "png", **arguments: Any) -> bytes:
        """A chart as PNG, SVG or PDF (needs the extra ``images`` and an installed Chromium).

        Raises:
            TracediffError: no browser is found, or it cannot draw.
        """
        from tracediff.report.charts_files import image

        return image(getattr(self.charts, name)(**arguments), image_format)
