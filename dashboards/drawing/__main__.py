"""`make pictures`: runs the scenario, makes the large scene, draws both dashboards in each state, and tells faults."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from drawing.answers import answer_board
from drawing.large import scene as large
from drawing.macros import View
from drawing.scenario import STATES, run
from drawing.sources import Sources

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BOARDS = ("migration", "workers")
PICTURES = ROOT / "docs" / "pictures"
PUBLISHED = (
    *(f"migration_{state}" for state in STATES),
    *(f"workers_{state}" for state in STATES if state != "attention"),  # nothing is to be seen there
    "migration_failing_light",
    *(f"migration_{state}" for state in large.STATES),
    "workers_large",
)
EXPECTED = {
    "migration_attention": {"State": "needs an operator", "Need an operator": "12"},
    "migration_done": {"State": "done", "Done": "100.0", "Need an operator": "0"},
}
"""What a number of a picture must say: what the board told the operator to type has worked."""
WIDTH = 1600
SHOWN_BEFORE = timedelta(seconds=20)


SCENES = {"small": run, "large": large.run}


class Watched(Protocol):
    """What is looked at."""

    sources: Sources
    started_at: float
    scrape_seconds: int
    chosen: Mapping[str, str]
    """Values of variables; the others have what they have when somebody opens the dashboard."""


def main() -> None:
    """Run, draw, and put the pictures into docs; the exit status is 1 if a panel cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=ROOT / ".tools" / "pictures", help="where all is kept")
    parser.add_argument("--again", action="store_true", help="draw the answers of the last run again")
    parser.add_argument("--scenes", nargs="+", default=SCENES, choices=SCENES, help="what is run or made")
    parser.add_argument("--boards", type=Path, default=HERE.parent / "grafana/dashboards", help="where the files are")
    options = parser.parse_args()
    answers = options.kept / "answers"
    if not options.again:
        shutil.rmtree(options.kept, ignore_errors=True)
        answers.mkdir(parents=True)
        for scene in options.scenes:
            with tempfile.TemporaryDirectory(prefix="rowferry-pictures-") as folder:
                SCENES[scene](Path(folder), lambda state, seen: collect(state, seen, options.boards, answers))
    from drawing.smaller import write_smaller  # noqa: PLC0415 - only where Pillow is

    faults = draw(sorted(answers.glob("*.json")), options.kept)
    for name in PUBLISHED:
        if (options.kept / f"{name}.png").exists():
            write_smaller(options.kept / f"{name}.png", PICTURES / f"{name}.png")
    for fault in faults:
        sys.stderr.write(fault + "\n")
    raise SystemExit(1 if faults else 0)


def collect(state: str, seen: Watched, boards: Path, folder: Path) -> dict[str, Any]:
    """Write down what both dashboards are answered now: as they open, in light, and with every row opened.

    Returns what Migration is answered.
    """
    answered: dict[str, dict[str, Any]] = {}
    start = datetime.fromtimestamp(seen.started_at, UTC) - SHOWN_BEFORE
    for name in BOARDS:
        board = json.loads((boards / f"{name}.json").read_text(encoding="utf-8"))
        view = View(start, datetime.now(UTC), {}, seen.scrape_seconds)
        with seen.sources.of_one_moment() as sources:
            shown = answer_board(board, sources, view, width=WIDTH, chosen=seen.chosen)
        answered[name] = shown
        _write(folder / f"{name}_{state}.json", shown)
        _write(folder / f"{name}_{state}_light.json", {**shown, "light": True})
        if any(panel.get("panels") for panel in board["panels"]):
            _write(folder / f"{name}_{state}_opened.json", {**shown, "expanded": True})
    sys.stdout.write(f"· {state}\n")
    sys.stdout.flush()
    return answered["migration"]


def draw(documents: list[Path], folder: Path) -> list[str]:
    """Draw each document to a picture of the same name; return a sentence for each fault."""
    command = ["node", str(HERE / "draw.mjs"), str(folder), *map(str, documents)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1200, env=os.environ, check=False)
    if done.returncode:
        return [f"node {HERE / 'draw.mjs'} failed with status {done.returncode}."]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    sentences = [
        sentence(drawn["name"], fault)
        for drawn in found
        for fault in [*drawn["faults"], *unexpected(drawn["name"], drawn["stats"])]
    ]
    return list(dict.fromkeys(sentences))


def unexpected(name: str, stats: dict[str, str]) -> list[dict[str, str]]:
    """Return a fault for each number of the picture that says something else than it must."""
    expected = EXPECTED.get("_".join(name.split("_")[:2]), {})
    return [
        {"panel": panel, "what": f'shows "{stats.get(panel, "")}", not "{text}"'}
        for panel, text in expected.items()
        if stats.get(panel) != text
    ]


def sentence(name: str, fault: dict[str, str]) -> str:
    """Return what is wrong with a panel of the picture `BOARD_STATE` or `BOARD_STATE_opened`."""
    board, state, *_ = name.split("_")
    return f'The panel "{fault["panel"]}" of the dashboard {board} {fault["what"]} in the state "{state}".'


def _write(path: Path, shown: dict[str, object]) -> None:
    path.write_text(json.dumps(shown), encoding="utf-8")


if __name__ == "__main__":
    main()
