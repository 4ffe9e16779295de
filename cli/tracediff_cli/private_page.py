"""A page that leads a browser to an address with a token."""

from __future__ import annotations

import html
from collections.abc import Iterator
from contextlib import contextmanager

from tracediff.process.temporary import temporary_folder


@contextmanager
def page_that_opens(address: str) -> Iterator[str]:
    """The URL of a private file that leads to ``address``: other users see the command that starts a browser."""
    with temporary_folder() as folder:
        page = folder / "tracediff.html"
        target = html.escape(address)
        page.write_text(
            f'<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>tracediff</title>'
            f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">Open</a>\n'
        )
        yield page.as_uri()
