"""Names of events as they enter: whatever later searches, compares or shows a name gets one of bounded length."""

from __future__ import annotations

import hashlib

LONGEST_NAME = 16_384
"""Characters of a name that are kept; the longest of published traces has 3,028."""


def bounded(name: str) -> str:
    """``name``; of one that is longer than `LONGEST_NAME` the beginning and a digest, so that two stay two."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.blake2s(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{name[: LONGEST_NAME - len(digest) - 2]}…#{digest}"
