"""`make pictures`: runs the scenario, and draws both dashboards in each state."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drawing.answers import answer_board
from drawing.macros import View
from drawing.scenario import STATES, Scenario, run

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BOARDS = ("migration", "workers")
PICTURES = ROOT / "docs" / "pictures"
PUBLISHED = (
    *(f"migration_{state}" for state in STATES),
    *(f"workers_{state}" for state in STATES if state != "attention"),  # nothing is to be seen there
)
WIDTH = 1600
SHOWN_BEFORE = timedelta(seconds=20)


def main() -> None:
    """Run, draw, and put the pictures into docs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=ROOT / ".tools" / "pictures", help="where all is kept")
    parser.add_argument("--again", action="store_true", help="draw the answers of the last run again")
    parser.add_argument("--boards", type=Path, default=HERE.parent / "grafana/dashboards", help="where the files are")
    options = parser.parse_args()
    answers = options.kept / "answers"
    if not options.again:
        shutil.rmtree(options.kept, ignore_errors=True)
        answers.mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix="rowferry-pictures-") as folder:
            run(Path(folder), lambda state, seen: collect(state, seen, options.boards, answers))
    from drawing.smaller import write_smaller  # noqa: PLC0415 - only where Pillow is

    draw(sorted(answers.glob("*.json")), options.kept)
    for name in PUBLISHED:
        if (options.kept / f"{name}.png").exists():
            write_smaller(options.kept / f"{name}.png", PICTURES / f"{name}.png")


def collect(state: str, seen: Scenario, boards: Path, folder: Path) -> dict[str, Any]:
    """Write down what both dashboards are answered now: as they open.

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
    sys.stdout.write(f"· {state}\n")
    sys.stdout.flush()
    return answered["migration"]


def draw(documents: list[Path], folder: Path) -> None:
    """Draw each document to a picture of the same name."""
    command = ["node", str(HERE / "draw.mjs"), str(folder), *map(str, documents)]
    subprocess.run(command, timeout=1200, env=os.environ, check=True)


def _write(path: Path, shown: dict[str, object]) -> None:
    path.write_text(json.dumps(shown), encoding="utf-8")


if __name__ == "__main__":
    main()
