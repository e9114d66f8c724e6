"""`make pictures`: runs the scenario, and draws both dashboards in each state."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from drawing.answers import Sources, answer_board
from drawing.scenario import STATES, Scenario, run

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BOARDS = ("migration", "workers")
PICTURES = ROOT / "docs" / "pictures"
PUBLISHED = (
    *(f"migration_{state}" for state in STATES),
    *(f"workers_{state}" for state in STATES if state != "attention"),  # nothing is to be seen there
)
CHROMIUMS = ("chromium", "chromium-browser", "chromium-headless-shell")
SHOWN_BEFORE = timedelta(seconds=20)


def main() -> None:
    """Run, draw, and put the pictures into docs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=ROOT / ".tools" / "pictures", help="where all is kept")
    parser.add_argument("--again", action="store_true", help="draw the answers of the last run again")
    options = parser.parse_args()
    answers = options.kept / "answers"
    if not options.again:
        shutil.rmtree(options.kept, ignore_errors=True)
        answers.mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix="rowferry-pictures-") as folder:
            run(Path(folder), lambda state, seen: collect(state, seen, answers))
    from drawing.smaller import write_smaller  # noqa: PLC0415 - only where Pillow is

    draw(sorted(answers.glob("*.json")), options.kept)
    for name in PUBLISHED:
        write_smaller(options.kept / f"{name}.png", PICTURES / f"{name}.png")


def collect(state: str, seen: Scenario, folder: Path) -> None:
    """Write down what both dashboards are answered now, as they open."""
    with psycopg.connect(seen.reader_dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        sources = Sources(connection, seen.prometheus)
        for name in BOARDS:
            board = json.loads((HERE.parent / "grafana" / "dashboards" / f"{name}.json").read_text(encoding="utf-8"))
            shown = answer_board(board, sources, seen.started_at - SHOWN_BEFORE, datetime.now(UTC))
            (folder / f"{name}_{state}.json").write_text(json.dumps(shown), encoding="utf-8")
    sys.stdout.write(f"· {state}\n")
    sys.stdout.flush()


def draw(documents: list[Path], folder: Path) -> None:
    """Draw each document to a picture of the same name."""
    chromium = next(filter(None, map(shutil.which, CHROMIUMS)))
    command = ["node", str(HERE / "draw.mjs"), chromium, str(folder), *map(str, documents)]
    subprocess.run(command, timeout=1200, check=True)


if __name__ == "__main__":
    main()
