"""Records what `rowferry demo` prints, for docs/first-migration.md: the lines that tell the story, each as it came.

Run it from the checkout, on a machine that does nothing else: `.venv/bin/python docs/pictures/take_demo.py`.
"""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "first-migration.md"
BLOCK = re.compile(r"```console\n\$ make demo\n.*?\n```\n", re.DOTALL)
KEPT = re.compile(
    r"""
    \$\ rowferry | Made\ | By\ accident | The\ lost\ objects | The\ demo\ took      # the steps
    | Pass\ 1 | Progress\ 100
    | ⚡ | Worker\ process | Batch\ \d+\ was\ taken\ over                             # the kill
    | \ \ (migrated|kept|missing)\ +[\d,]+\ \  | \d+\ batch(es)?\ in\ ERROR         # the outcome
    | missing: | \ \ \ \ for\ example | Requeued | .*\ batch\ finished\  | \ \ [✓✗]\  # the repair, and the audit
    """,
    re.VERBOSE,
)


def main() -> None:
    """Run the demo without a terminal, and put what it says into the page."""
    command = [sys.executable, "-m", "rowferry_cli", "demo"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    lines = [line.rstrip() for line in printed.splitlines() if KEPT.match(line)]
    story = "\n".join(f"\n{line}" if line.startswith("$ ") else line for line in lines)
    text, count = BLOCK.subn(lambda _: f"```console\n$ make demo\n{story}\n```\n", PAGE.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit(f"{PAGE} has {count} blocks that begin with `$ make demo`, not one.")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
