"""Mutants of an SQL function: its text cut into words, one of which is changed, or a condition left out.

A parser is not needed: the files are formatted by one rule (sqlfluff), and what PostgreSQL does not take is no mutant.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutants.mutant import Mutant

WORD = re.compile(
    r"(?P<comment>--[^\n]*)|(?P<string>'(?:[^']|'')*')|(?P<name>[a-z_][\w.]*)|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<sign>:=|=>|->>|->|<=|>=|<>|\|\||::|<<|>>|[-+*/%<>=(),;\[\]?])",
    re.IGNORECASE,
)
BODY = re.compile(r"(?<=as \$\$\n).*?(?=\$\$;)", re.DOTALL)

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=", "+": "-", "-": "+", "*": "/", "/": "*",
    "min": "max", "max": "min", "least": "greatest", "greatest": "least", "floor": "ceil", "ceil": "floor",
    "any": "all", "all": "any", "true": "false", "false": "true", "and": "or", "or": "and", "left": "inner",
    "inner": "left", "desc": "asc", "union": "union all", "exists": "not exists",
}  # fmt: skip
STATUSES = {
    "'INIT'": "'DONE'", "'DONE'": "'ERROR'", "'ERROR'": "'INIT'", "'RETRY'": "'RELEASED'", "'RELEASED'": "'RETRY'",
    "'LOST'": "'RETRY'", "'missing'": "'failed'", "'failed'": "'missing'", "'conflict'": "'failed'",
}  # fmt: skip
LOCKS = re.compile(r"\bfor (?:no key )?(?:update|share|key share)(?: of \w+)?(?P<wait> skip locked| nowait)?")
NULLS = (
    (re.compile(r"\bis not null\b"), "is null"),
    (re.compile(r"\bis null\b"), "is not null"),
    (re.compile(r"\bis distinct from\b"), "is not distinct from"),
    (re.compile(r"\bis distinct from\b"), "<>"),
    (re.compile(r"\bis not distinct from\b"), "="),
    (re.compile(r"\bdistinct on \([^)]*\)"), ""),
    (re.compile(r"\bcount\(distinct "), "count("),
)
INTERVAL = re.compile(r"'(\d+)( \w+)'")
CALLS_OF_MANY = {"concat", "concat_ws", "coalesce", "least", "greatest"}
"""Functions that may be called with one argument less."""
BEGINS_CONDITION = {"where", "on", "if", "elsif", "when", "having"}
ENDS_CONDITION = {
    "then", "loop", "group", "order", "limit", "for", "returning", "union", "inner", "left", "cross", "full", "join",
    "where", "on", "having", "window", "else", "end", "do", "filter", "into",
}  # fmt: skip
STATEMENTS = re.compile(r"^ *(?P<statement>(?:perform|update|delete from|insert into|raise)\b[^;]*;)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the text, with the brackets around it counted."""

    kind: str
    text: str
    start: int
    end: int
    depth: int


Change = tuple[int, int, str, str]
"""Where it begins and ends, what stands there instead, and the operator's name."""


def list_mutants(root: Path, path: str) -> Iterator[Mutant]:
    """Yield all mutants of a function's file, in the order of the text."""
    text = (root / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    for start, end, instead, operator in dict.fromkeys(sorted(find_changes(text))):
        line = text.count("\n", 0, start) + 1
        yield Mutant(
            path=path,
            line=line,
            last_line=line + text.count("\n", start, end),
            column=start - text.rfind("\n", 0, start),
            operator=operator,
            before=text[start:end],
            after=instead,
            source=lines[line - 1].strip(),
            write=lambda start=start, end=end, instead=instead: text[:start] + instead + text[end:],
        )


def find_changes(text: str) -> Iterator[Change]:
    """Yield every change of a function's body."""
    body = BODY.search(text)
    if body is None:
        return
    words = list(split_words(text, body.start(), body.end()))
    code = "".join(" " * len(found[0]) if found["comment"] else found[0] for found in _pieces(text, body.end()))
    yield from swap_words(words)
    yield from drop_conditions(words, text)
    yield from drop_arguments(words)
    for lock in LOCKS.finditer(code, body.start()):
        yield lock.start(), lock.end(), "", "drop the lock"
        if lock["wait"]:
            yield lock.start("wait"), lock.end("wait"), "", "wait for the lock"
    for pattern, instead in NULLS:
        yield from ((found.start(), found.end(), instead, "flip") for found in pattern.finditer(code, body.start()))
    for found in STATEMENTS.finditer(code, body.start()):
        yield found.start("statement"), found.end("statement"), "null;", "drop the statement"


def _pieces(text: str, end: int) -> Iterator[re.Match[str]]:
    """Yield the text in pieces of which comments are apart, strings are whole."""
    return re.finditer(r"(?P<comment>--[^\n]*)|'(?:[^']|'')*'|[^-']+|[-']", text[:end])


def split_words(text: str, start: int, end: int) -> Iterator[Word]:
    """Yield the words of a part of the text, without comments."""
    depth = 0
    for found in WORD.finditer(text, start, end):
        kind = str(found.lastgroup)
        if kind == "comment":
            continue
        depth -= found[0] in {")", "]"}
        yield Word(kind, found[0], found.start(), found.end(), depth)
        depth += found[0] in {"(", "["}


def swap_words(words: list[Word]) -> Iterator[Change]:
    """Yield comparisons, connectives, functions, statuses and numbers changed, one at a time."""
    between = False
    for before, word, after in zip([None, *words], words, [*words[1:], None], strict=False):
        between = between or word.text == "between"
        if word.text == "and" and between:
            between = False
        elif word.text == "exists" and before and before.text == "not":
            yield before.start, word.end, "exists", "swap"
        elif word.text in {"left", "any", "all"} and (after is None or after.text not in {"join", "("}):
            continue
        elif word.text == "-" and not (before and (before.kind in {"name", "number"} or before.text in {")", "]"})):
            yield word.start, word.end, "", "swap"
        elif word.text in SWAPS:
            yield word.start, word.end, SWAPS[word.text], "swap"
        elif word.text in STATUSES:
            yield word.start, word.end, STATUSES[word.text], "status"
        elif word.kind == "number":
            value = float(word.text) * 2 if "." in word.text else int(word.text) + 1
            yield word.start, word.end, str(value), "number"
        elif found := INTERVAL.fullmatch(word.text):
            yield word.start, word.end, f"'{int(found[1]) * 10}{found[2]}'", "number"


def drop_conditions(words: list[Word], text: str) -> Iterator[Change]:
    """Yield each operand of `and` and `or` replaced by what changes nothing else, and each condition turned round."""
    for index, word in enumerate(words[:-1]):
        if word.text not in BEGINS_CONDITION or words[index + 1].text in {"conflict", "no_data_found"}:
            continue
        if word.text == "on" and index and words[index - 1].text == "distinct":
            continue
        operands = [*split_operands(words, index + 1, word.depth)]
        whole = (operands[0][0], operands[-1][1]) if operands else (word.end, word.end)
        if word.text in {"if", "elsif", "when", "where"} and operands:
            yield *whole, f"not coalesce({text[slice(*whole)]}, false)", "negate"
        yield from drop_operands(operands)
    for index, word in enumerate(words):
        if word.text == "(":
            operands = [*split_operands(words, index + 1, word.depth + 1)]
            yield from drop_operands(operands) if len(operands) > 1 else ()


def drop_operands(operands: list[tuple[int, int, str]]) -> Iterator[Change]:
    for start, end, connective in operands:
        yield start, end, "false" if connective == "or" else "true", "drop the condition"


def split_operands(words: list[Word], first: int, depth: int) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and connective of each operand of the condition that begins with this word."""
    start: int | None = None
    last, between, connective = first, False, "and"
    found: list[tuple[int, int, str]] = []
    for index in range(first, len(words)):
        word = words[index]
        if word.depth < depth or (word.depth == depth and (word.text in ENDS_CONDITION or word.text in {";", ","})):
            break
        between = between or (word.depth == depth and word.text == "between")
        if word.depth == depth and word.text in {"and", "or"} and not (between and word.text == "and"):
            connective = word.text
            if start is not None:
                found.append((start, words[last].end, connective))
            start = None
            continue
        between = between and not (word.depth == depth and word.text == "and")
        start, last = word.start if start is None else start, index
    if start is not None:
        found.append((start, words[last].end, connective))
    return iter(found)


def drop_arguments(words: list[Word]) -> Iterator[Change]:
    """Yield calls of functions of any number of arguments without one of these."""
    for index, word in enumerate(words[:-1]):
        if word.text not in CALLS_OF_MANY or words[index + 1].text != "(":
            continue
        depth = words[index + 1].depth
        inside = words[index + 2 :]
        end = next(place for place, each in enumerate(inside) if each.text == ")" and each.depth == depth)
        commas = [place for place, each in enumerate(inside[:end]) if each.text == "," and each.depth == depth + 1]
        if not commas:
            continue
        yield inside[0].start, inside[commas[0] + 1].start, "", "drop the argument"
        for comma, following in zip(commas, [*commas[1:], end], strict=True):
            yield inside[comma].start, inside[following - 1].end, "", "drop the argument"
