"""URLs of the legacy bucket inside longer texts, such as HTML and Markdown. Pure."""

import re
from collections.abc import Iterator, Sequence

from rowferry.plan import Side
from rowferry_cli.discover.evidence.places import Placed
from rowferry_cli.discover.evidence.readings import mentions_bucket

_URL = re.compile(r"""(?:[a-z][a-z0-9+.-]*:)?//[^\s"'<>()\[\]{}\\|^`]+""", re.IGNORECASE)
"""As `within = "text"` of a plan finds URLs: docs/forms.md."""
_ENDS = ".,;:!?"
"""Punctuation behind a URL, which is not part of it."""


def list_embedded(placed: Sequence[Placed], side: Side) -> list[Placed]:
    """Return the URLs of the bucket in texts, if some texts are longer than the URL; nothing where each is one."""
    found = [(row, url, text) for row, text in placed for url in _list_urls(text) if mentions_bucket(url, side)]
    if all(url == text for _, url, text in found):
        return []
    return [(row, url) for row, url, _ in found]


def _list_urls(text: str) -> Iterator[str]:
    for found in _URL.finditer(text):
        yield found[0].rstrip(_ENDS)
