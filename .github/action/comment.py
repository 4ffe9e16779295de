"""Writes the result into one comment on the pull request: the first run creates it, later ones update it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from workflow import annotate, event, setting

LONGEST = 65_536
"""Characters of a comment, by GitHub's REST API."""
PAGE = 100
MOST_PAGES = 100
TIMEOUT_S = 30.0
FORBIDDEN = (401, 403, 404)


def main() -> None:
    """Create or update the comment; a comment that cannot be written is a notice, since the summary has the result."""
    number = event().get("pull_request", {}).get("number")
    if not isinstance(number, int):
        return
    # Only a name that plan.py accepted gets here, so the marker ends where it should.
    marker = f"<!-- tracediff: {setting('NAME')} -->"
    text = f"{marker}\n{(Path(setting('FOLDER')) / 'comment.md').read_text()}"
    try:
        write(number, marker, bounded(text))
    except urllib.error.HTTPError as error:
        if error.code in FORBIDDEN:
            rights = "the token lacks pull-requests: write, as it does for pull requests from forks"
            annotate("notice", f"no comment: {rights} (HTTP {error.code}); the summary of the job has the result")
        else:
            annotate("warning", f"no comment: HTTP {error.code}; the summary of the job has the result")
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        reason = getattr(error, "reason", error)
        annotate("warning", f"no comment: {reason}; the summary of the job has the result")


def write(number: int, marker: str, text: str) -> None:
    """Update the comment of an earlier run, or create one.

    Raises:
        HTTPError: GitHub refused. URLError, TimeoutError: it did not answer. ValueError: it answered no JSON.
    """
    comments = f"/repos/{setting('GITHUB_REPOSITORY')}/issues"
    found = earlier(f"{comments}/{number}/comments", marker)
    if found is None:
        request("POST", f"{comments}/{number}/comments", {"body": text})
    else:
        request("PATCH", f"{comments}/comments/{found}", {"body": text})


def earlier(path: str, marker: str) -> int | None:
    """The number of the comment that an earlier run wrote: a bot's, since anyone can write the marker."""
    for page in range(1, MOST_PAGES + 1):
        comments = request("GET", f"{path}?per_page={PAGE}&page={page}")
        for comment in comments:
            author, body = comment["user"] or {}, comment["body"] or ""
            if author.get("type") == "Bot" and body.startswith(marker):
                return int(comment["id"])
        if len(comments) < PAGE:
            break
    return None


def request(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """What GitHub's REST API answers, version 2022-11-28."""
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {setting('TOKEN')}",
        "Content-Type": "application/json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(setting("GITHUB_API_URL") + path, data, headers, method=method)
    with urllib.request.urlopen(call, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def bounded(text: str) -> str:
    """``text`` cut at a line where it is longer than a comment may be."""
    if len(text) <= LONGEST:
        return text
    rest = "\n\nThe rest is in the summary of the job.\n"
    return text[: text.rindex("\n", 0, LONGEST - len(rest))] + rest


if __name__ == "__main__":
    main()
