"""Takes docs/pictures/demo.svg: `rowferry demo` in a real terminal (tmux), from its first line to its last; it moves.

Run it from the checkout, on a machine that does nothing else: `.venv/bin/python docs/pictures/take_demo.py`. It needs
tmux, and starts all else itself.
"""

import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.text import Text
from take_watch import SVG, draw, terminals

WIDTH, HEIGHT = 110, 28
LAST_LINE = "$ rowferry migrate\n"
"""By which the demo's last words are known: the command that ends its own migration has options."""
LOOK_EVERY_SECONDS = 0.4
END_SECONDS = 6
"""How long the last frame stays."""
DEADLINE_SECONDS = 120

FRAME = '<g class="frame f{number}"><style>{{styles}}</style>{{backgrounds}}{{matrix}}</g>\n'
STYLE = """
.frame {{ visibility: hidden; animation-duration: {seconds:.1f}s; animation-timing-function: step-end;
    animation-iteration-count: infinite; }}
@media (prefers-reduced-motion: reduce) {{ .frame {{ animation: none; }} .f{last} {{ visibility: visible; }} }}
"""
KEYFRAMES = """\
.f{number} {{ animation-name: f{number}; }}
@keyframes f{number} {{ 0% {{ visibility: hidden; }} {start:.2f}% {{ visibility: visible; }} {end} }}
"""


def main() -> None:
    """Run the demo in a terminal, and put what it showed, and when, into one picture."""
    programs = shlex.quote(str(Path(sys.executable).parent))
    command = f"PATH={programs}:$PATH rowferry demo; sleep {DEADLINE_SECONDS}"
    with (
        tempfile.TemporaryDirectory() as folder,
        terminals(Path(folder), command, {"demo": (WIDTH, HEIGHT)}) as captures,
    ):
        frames = list(record(captures[0]))
    starts = [at for at, _ in frames]
    seconds = starts[-1] + END_SECONDS
    style = STYLE.format(seconds=seconds, last=len(frames) - 1)
    matrix = ""
    for number, (start, frame) in enumerate(frames):
        end = f"{100 * starts[number + 1] / seconds:.2f}% {{ visibility: hidden; }}" if frame != frames[-1][1] else ""
        style += KEYFRAMES.format(number=number, start=100 * start / seconds, end=end)
        # The lines are clipped as those of the empty frame around them, which has as many.
        matrix += draw(frame, WIDTH, "", FRAME.format(number=number), f"d{number}").replace(
            f"d{number}-line", "demo-line"
        )
    around = SVG.replace("take_watch", "take_demo").replace("{matrix}", "MATRIX").replace("</style>", "STYLE</style>")
    whole = draw("\n".join(" " * HEIGHT), WIDTH, "rowferry demo", around, "demo")
    Path(__file__).with_name("demo.svg").write_text(whole.replace("MATRIX", matrix).replace("STYLE", style), "utf-8")


def record(capture: Callable[[], str]) -> Iterator[tuple[float, str]]:
    """Yield each screen that differs from the one before, with the seconds since the first, until the demo is over."""
    began, before = time.monotonic(), ""
    while LAST_LINE not in f"{Text.from_ansi(before).plain}\n":
        if time.monotonic() - began > DEADLINE_SECONDS:
            raise SystemExit(f"{before}\nthe demo did not come to its end")
        frame = capture().rstrip("\n")
        if frame != before:
            yield time.monotonic() - began, frame
        before = frame
        time.sleep(LOOK_EVERY_SECONDS)


if __name__ == "__main__":
    main()
