"""URLs in longer texts: where one ends, and which key it writes. Pure.

Nobody knows whether a text is HTML, Markdown, CSS, JSON or prose. So a URL is read as far as the place where it stands
allows, and what is copied is what the rewritten text then names. Where that is too long, the object is missing and the
row stays; it never points at an object that was not copied. Sources: CommonMark 0.31, "Links" (a destination has
balanced parentheses); GitHub Flavored Markdown 0.29, "Autolinks (extension)" (what is no part of a bare URL's end);
HTML Living Standard, "Attributes" (inside quotes, all but the quote).
"""

import html
import json
import re

_BLANK = "[:space:]"
_LIST = "[,;|]+https?://"
"""What ends a URL in a list without blanks."""
_CLOSED_BY = {"`": "`", "]": "[", "=": "]", "|": "|", "{": "}", "[": "]"}
"""What a URL right behind such a character does not contain: a code span, [b]…[/b], [url=…], a table, {…} and […]."""


ENTITIES = {name: html.unescape(name) for name in ("&quot;", "&#34;", "&#39;", "&apos;", "&#38;", "&amp;")}
"""What is read as the character that it means, in this order; `rest_of_url` in sql/queries/fragments.sql is alike."""
_END = re.compile(r"[.,;:!?'*_~)\]}|`]+\Z")
_PARENTHESES_AND_END = re.compile(r"(\([^()]*\))[.,;:!?'*_~)\]}|`]*\Z")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def write_prefixes(prefixes: list[str]) -> str:
    """Return what finds the beginnings of URLs in a text, for PostgreSQL."""
    escaped = [re.sub(r"([^\w])", r"\\\1", prefix) for prefix in prefixes]
    return f"(?:{'|'.join(escaped)})"


def _unit(no: str = "", blank: str = _BLANK, entities: str = "") -> str:
    """Return what matches one character of a URL, or what stands for one; `no`: what else ends it."""
    first = "]" if "]" in no else ""
    others = no.replace("]", "") + (blank or r"\n\r")
    return rf'(?:(?!{_LIST})(?:[^{first}<>"&\\{others}]|&(?!quot;|lt;|gt;{entities})|\\(?![nrt"])))'


ENDS = json.dumps(
    {
        "": f"^{_unit()}*",
        '"': rf'^(?:{_unit(blank="")}*(?=\\?")|{_unit()}*)',
        "'": rf"^(?:{_unit(no=chr(39), blank='')}*(?=')|{_unit(no=chr(39))}*)",
        "&#39;": f"^{_unit(entities='|#39;|apos;')}*",
        "(": rf"^(?:{_unit(no='()')}|\({_unit(no='()')}*\))*",
        **{opened: f"^{_unit(no=closed)}*" for opened, closed in _CLOSED_BY.items()},
    }
)
"""What of a text behind a prefix belongs to the URL, by the sign right before it: patterns of PostgreSQL, as JSON.

In the quotes of a `srcset` blanks end it: a list of URLs, each with a width or a density, stands there.
"""
NAMES_SOMETHING = r"""[^].,;:!?'*_~()[{}|`]"""
"""What a URL must have behind its prefix: a bare prefix names no object."""


def read_url(rest: str) -> tuple[str, str | None]:
    """Return what a URL writes behind its prefix, and what it writes if the signs at its end are part of it, too.

    None: it has none. What stands for another character (`&amp;`, a backslash before a sign) is read as that.
    """
    short = _PARENTHESES_AND_END.sub(r"\1", rest) if _PARENTHESES_AND_END.search(rest) else _END.sub("", rest)
    has_query = "?" in _unescape(short) or "#" in _unescape(short)
    return _unescape(short), None if short == rest or has_query else _unescape(rest)


def _unescape(text: str) -> str:
    for name, sign in ENTITIES.items():
        text = text.replace(name, sign)
    return _ESCAPED.sub(r"\1", text)
