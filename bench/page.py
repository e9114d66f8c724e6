"""docs/speed.md and speed-figures.md: their figures are made from bench/results/*.json, so they always equal them."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bench import BENCHES, QUESTIONS
from bench.headlines import HEADLINES, PACE_ROWS, Headline, PaceRow
from bench.record import INCLUDED, RESULTS
from bench.run_costs import compose_costs
from bench.stream_table import compose_streams

DOCS = Path(__file__).parent.parent / "docs"
PAGE, FIGURES_PAGE = DOCS / "speed.md", DOCS / "speed-figures.md"
README = DOCS.parent / "README.md"

Result = dict[str, Any]


def read_results(folder: Path = RESULTS, names: Iterable[str] = BENCHES) -> list[Result]:
    """Return the results in a folder in the order of the benches; a bench that has none is left out."""
    paths = [folder / f"{name}.json" for name in names]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def list_targets(results: Iterable[Result]) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Yield every target with the result that it belongs to."""
    for result in results:
        for target in result["targets"]:
            yield result, target


def describe_target(target: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return what was asked for and where it was worst, the bound, the figure and the verdict, in words."""
    bounds = [
        f"{sign} {write_number(target[bound])}{target['unit']}"
        for sign, bound in (("≥", "at_least"), ("≤", "at_most"))
        if target[bound] is not None
    ]
    seen = f"{write_number(target['seen'])}{target['unit']}"
    verdict = "reported" if not bounds else "yes" if target["reached"] else "no"
    server = target.get("server")
    what = f"{target['what']}, at worst: {server}" if server else target["what"]
    return what, " and ".join(bounds), seen, verdict


def write_number(number: float) -> str:
    """Return a number for reading: three significant digits, thousands with commas."""
    if abs(number) >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def find_answer(headline: Headline, results: Iterable[Result]) -> tuple[str, str] | None:
    """Return the figure of a headline with its unit, and the server that it is of, if that is one of several.

    None where no result has it.
    """
    for result, target in list_targets(results):
        if (result["name"], target["what"]) == (headline.bench, headline.target):
            return headline.answer.format(describe_target(target)[2]), target.get("server", "")
    return None


def compose_headlines(results: Iterable[Result]) -> str:
    """Return the table of the questions that a reader has first, and how many targets were not reached."""
    results = list(results)
    lines = ["| question | answer | worst of the servers | bench | day |", "| --- | --- | --- | --- | --- |"]
    days = {result["name"]: result["when"][:10] for result in results}
    for headline in HEADLINES:
        found = find_answer(headline, results)
        if found is not None:
            bench = f"[`{headline.bench}`]({FIGURES_PAGE.name}#{headline.bench})"
            lines.append(f"| {headline.question} | {' | '.join(found)} | {bench} | {days[headline.bench]} |")
    verdicts = [describe_target(target)[3] for _, target in list_targets(results)]
    missed, asked = verdicts.count("no"), len(verdicts) - verdicts.count("reported")
    return "\n".join(
        [*lines, "", f"Of {asked} targets {missed} are missed: [all of them]({FIGURES_PAGE.name}#all-targets)."]
    )


def compose_targets(results: Iterable[Result]) -> str:
    """Return the table of all targets in Markdown."""
    lines = ["| bench | what | target | seen | reached |", "| --- | --- | --- | --- | --- |"]
    for result, target in list_targets(results):
        lines.append(f"| `{result['name']}` | " + " | ".join(describe_target(target)) + " |")
    return "\n".join(lines)


def compose_figures(results: Iterable[Result]) -> str:
    """Return every figure of every contestant, a table a bench, and with what it was measured."""
    return "\n\n".join(part for result in results for part in describe_result(result))


def describe_result(result: Result) -> Iterator[str]:
    """Yield the parts of one bench's section."""
    machine = result["machine"]
    yield f"### `{result['name']}`"
    yield (
        f"{result['what']} Measured on {result['when'][:10]} on {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_gb']:.0f} GB, {machine['system']}; load before a repetition {describe_load(result)}."
        f"{' A reduced run.' if result.get('reduced') else ''}"
    )
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    call = f" Python takes {machine['python_call_ns']} ns for a call." if "python_call_ns" in machine else ""
    yield f"Versions: {versions}.{call}"
    settings = [f"{name.replace('_', ' ')} {write_setting(value)}" for name, value in result["settings"].items()]
    if settings:
        yield "Settings: " + ", ".join(settings) + "."
    yield from result["notes"]
    yield from (f"Absent: {name} ({why})." for name, why in result["absent"].items())
    lines = ["| contestant | figure | median | from | to |", "| --- | --- | --- | --- | --- |"]
    for contestant, figures in result["summary"].items():
        for figure, spread in figures.items():
            if figure != "load_before":
                numbers = " | ".join(write_number(spread[part]) for part in ("median", "min", "max"))
                lines.append(f"| {contestant} | {figure.replace('_', ' ')} | {numbers} |")
    if len(lines) > 2:
        yield "\n".join(lines)


def describe_load(result: Result) -> str:
    """Return the span of the load averages before the repetitions."""
    loads = [run["load_before"] for run in result["repetitions"]] or [0.0]
    return f"{min(loads):.1f} to {max(loads):.1f}"


def write_setting(value: Any) -> str:
    """Return a setting for reading."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def compose_pictures(results: Iterable[Result]) -> str:
    """Return each question with the plot that answers it."""
    return "\n\n".join(
        f"**{QUESTIONS[result['name']]}**\n\n![{result['what']}](pictures/bench_{result['name']}.svg)"
        for result in results
        if result["name"] in QUESTIONS
    )


BLOCKS: dict[Path, dict[str, Callable[[Iterable[Result]], str]]] = {
    PAGE: {
        "headlines": compose_headlines,
        "streams": compose_streams,
        "large run": lambda _results: compose_costs(),
        "pictures": compose_pictures,
    },
    FIGURES_PAGE: {"targets": compose_targets, "figures": compose_figures},
}
"""What stands between `<!-- NAME: written by make bench -->` and `<!-- end of NAME -->` on each page."""


def fill_in(page: Path, text: str, results: list[Result]) -> str:
    """Return the text of a page with its blocks made anew; ValueError where it has lost one."""
    for name, compose in BLOCKS[page].items():
        begin, end = f"<!-- {name}: written by make bench -->\n", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise ValueError(f"{page.name} has no block {name}")
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{compose(results)}\n\n{end}{rest.partition(end)[2]}"
    return text


def compose_row(row: PaceRow, results: Iterable[Result]) -> str:
    """Return a row of the README: the paces on the server of a target, with the start or without, the best in bold."""
    result, target = next(
        (result, target)
        for result, target in list_targets(results)
        if (result["name"], target["what"]) == (row.bench, row.target)
    )
    server, _, start = target.get("server", "").partition(", start ")
    figure = row.figure + (INCLUDED if start == "included" else "")
    names = [f"{contestant}, {server}" if server else contestant for contestant in row.contestants]
    spreads = [result["summary"].get(name, {}).get(figure) for name in names]
    paces = [spread["median"] if spread else 0.0 for spread in spreads]
    words = [write_number(pace) if pace else "–" for pace in paces]
    words = [f"**{word}**" if pace == max(paces) else word for word, pace in zip(words, paces, strict=True)]
    return f"| {row.what} | {row.cells.format(*words)} |"


def fill_rows(text: str, results: list[Result]) -> str:
    """Return the text of the README with its rows of paces made anew; ValueError where it has lost one."""
    lines = text.splitlines(keepends=True)
    for row in PACE_ROWS:
        found = [number for number, line in enumerate(lines) if line.startswith(f"| {row.what} |")]
        if len(found) != 1:
            raise ValueError(f"{README.name} has no row {row.what}")
        lines[found[0]] = compose_row(row, results) + "\n"
    return "".join(lines)


def rewrite_pages() -> None:
    """Bring the pages to the results."""
    results = read_results()
    for page in BLOCKS:
        page.write_text(fill_in(page, page.read_text(encoding="utf-8"), results), encoding="utf-8")
    README.write_text(fill_rows(README.read_text(encoding="utf-8"), results), encoding="utf-8")
