"""The score of `make mutants`: the file that keeps it, and the table and survivors of docs/mutants.md."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mutants.modules import Module
from mutants.mutant import Mutant
from mutants.results import KILLED, Results

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parent.parent.parent / "docs" / "mutants.md"
BEGIN, END = "<!-- Written by `make mutants`: begin -->", "<!-- end -->"
HEAD = """\
| module | mutants | run | killed | of these by time-out | equivalent | survived | score |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""

Equivalents = dict[tuple[str, str, str, str], str]


@dataclass(frozen=True, slots=True)
class Score:
    """What is known of a module's mutants."""

    module: str
    mutants: int
    """How many there are."""
    killed: int
    timed_out: int
    """How many of the killed ones were stopped after their time."""
    survived: list[str] = field(default_factory=list)
    equivalent: list[dict[str, str]] = field(default_factory=list)
    """`mutant` and `reason` of each that no test can tell from the code."""
    not_run: str = ""
    """Why none was run."""

    @property
    def rate(self) -> float | None:
        """The share of the mutants that could be killed and were; None where none was run."""
        count = self.killed + len(self.survived)
        return self.killed / count if count else None


def score(module: Module, mutants: Iterable[Mutant], results: Results, equivalents: Equivalents) -> Score:
    """Return the score of a module, of the results that are still true."""
    mutants = list(mutants)
    pairs = list(results.find_all(module, mutants))
    survived = [mutant for mutant, result in pairs if result.verdict == "survived"]
    reasons = {mutant.place: equivalents.get(mutant.identity) for mutant in survived}
    return Score(
        module.name,
        len(mutants),
        sum(result.verdict in KILLED for _, result in pairs),
        sum(result.verdict == "timeout" for _, result in pairs),
        [mutant.label for mutant in survived if not reasons[mutant.place]],
        [{"mutant": each.label, "reason": reason} for each in survived if (reason := reasons[each.place])],
    )


def read_results() -> list[Score]:
    """Return the scores that were recorded last."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return [Score(**each) for each in found]


def record(scores: Iterable[Score], names: list[str]) -> None:
    """Put these scores in the place of older ones of the same modules, in the file and on the page."""
    by_name = {each.module: each for each in (*read_results(), *scores)}
    kept = [by_name[name] for name in names if name in by_name]
    text = json.dumps([asdict(each) for each in kept], indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")


def fill_in(page: str, scores: list[Score]) -> str:
    """Return the page with these scores between its marks."""
    marked = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
    text = "\n".join(compose(scores))
    return marked.sub(lambda _: f"\n{text}\n\n", page)


def compose(scores: list[Score]) -> Iterator[str]:
    """Yield the lines of the table, of the survivors and of the equivalent mutants."""
    yield HEAD
    yield from map(compose_row, scores)
    survived = [f"{each.module}: `{mutant}`" for each in scores for mutant in each.survived]
    yield from compose_list("Mutants that survived, each a test that is missing:", survived)
    equal = [f"{each.module}: `{found['mutant']}`: {found['reason']}" for each in scores for found in each.equivalent]
    yield from compose_list("Mutants that no test can tell from the code:", equal)


def compose_row(each: Score) -> str:
    if each.not_run:
        return f"| {each.module} | {each.mutants:,} | not run: {each.not_run} | | | | | |"
    run = each.killed + len(each.survived) + len(each.equivalent)
    numbers = (each.mutants, run, each.killed, each.timed_out, len(each.equivalent), len(each.survived))
    rate = "–" if each.rate is None else f"{each.rate:.0%}"
    return f"| {' | '.join([each.module, *(f'{number:,}' for number in numbers), rate])} |"


def compose_list(heading: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield from ("", heading, "", *(f"- {line}" for line in lines))
