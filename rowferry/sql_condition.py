"""The outer form of an SQL condition that a user wrote: quotes, comments and brackets must end."""

import re

_TOKENS = re.compile(
    r"""
    [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"  # strings and quoted names
    | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$               # dollar-quoted strings
    | --[^\n]* | /\*.*?\*/                                      # comments
    | (?P<open>['"]|/\*)                                        # a start without an end
    | (?P<mark>[();])
    """,
    re.VERBOSE | re.DOTALL,
)


def find_fault(condition: str) -> str | None:
    """Return what is wrong, as the end of a sentence; None: nothing. PostgreSQL checks the rest."""
    depth = 0
    rest = condition
    for token in _TOKENS.finditer(condition):
        if token["open"]:
            return f"has a {token['open']} that nothing closes: close it"
        if token["mark"] == ";":
            return "has a semicolon: give a condition, not a statement"
        depth += {"(": 1, ")": -1}.get(token["mark"], 0)
        if depth < 0:
            return "closes a bracket that it has not opened"
        if token[0].startswith(("--", "/*")):
            rest = rest.replace(token[0], "", 1)
    if depth:
        return "has a bracket that nothing closes"
    if not rest.strip():
        return "says nothing: leave it out, or give a condition"
    return None
