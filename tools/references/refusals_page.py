"""The cases of rowferry/s3/refusals.toml as a table of a page of docs/."""

from collections.abc import Iterator

from references.words import escape, table
from rowferry.s3.cures import Case, list_cases

HEAD = ("the server says", "it means", "what to do")
PLACES = {"{side}": "…", "{SIDE}": "…", "{told}": "…"}


def write_page() -> Iterator[str]:
    """Yield the paragraphs of docs/refusals.md below those that are written by hand."""
    said: dict[tuple[str, str], list[str]] = {}
    for case in list_cases():
        means = f"perhaps {case.means}" if case.guess else case.means
        said.setdefault((means, case.cure), []).append(_describe(case))
    yield table(HEAD, (("; ".join(dict.fromkeys(each)), *map(_write, case)) for case, each in said.items()))


def _describe(case: Case) -> str:
    """Return the codes, statuses, words and operations by which a case is known."""
    codes = ", ".join(f"`{code}`" for code in (*case.codes, *(f"HTTP {status}" for status in case.statuses)))
    words = f"{'with the words' if codes else 'the words'} `{case.words}`" if case.words else ""
    operations = f"of {', '.join(case.operations)}" if case.operations else ""
    return " ".join(filter(None, (codes, words, operations)))


def _write(text: str) -> str:
    for place, shown in PLACES.items():
        text = text.replace(place, shown)
    return escape(text)
