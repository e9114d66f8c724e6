"""Takes docs/pictures/watch*.svg: `rowferry watch` in real terminals (tmux), beside a real migration in its middle.

Run it from the checkout: `.venv/bin/python docs/pictures/take_watch.py`. It needs tmux, and starts all else itself.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rowferry_cli.log_file import LogFile
from rowferry_cli.migrate.workers import LocalWorkers
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.simulated.environment import Environment, start_environment

FRAMES = {"watch.svg": (118, 30), "watch_small.svg": (58, 16)}
"""Each picture with the columns and rows of its terminal; the small one can be read on a phone."""
PICTURES = 6000
WORKERS = 3
DEADLINE = timedelta(minutes=4)

SECOND_TABLE = """
[[entries]]
table = "public.covers"
id = "id"
key = "path"
from = "cover/"
to = "photo/"
"""
REST_OF_PLAN = f"""{SECOND_TABLE}
[database]
max_rows_per_second = 20
"""

SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- Taken by docs/pictures/take_watch.py from a real run. -->
<style>
.{unique_id}-matrix {{
    font-family: "Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace;
    font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's own frame for a terminal, without the font that it would fetch from elsewhere."""


def main() -> None:
    """Start an environment, migrate, take the picture during the migration, and clean up."""
    with start_environment(FakeS3Server) as environment:
        environment.plan_path.write_text(environment.plan_path.read_text() + REST_OF_PLAN)
        prepare(environment)
        log = LogFile(environment.folder / "workers.log")
        with (
            terminals(environment.folder, f"{sys.executable} -m rowferry_cli watch --interval 0.5", FRAMES) as captures,
            LocalWorkers(WORKERS, ["--parallel", "4"], log, lambda _line: None),
        ):
            frames = wait_for_frames(captures)
    for (name, (width, _)), frame in zip(FRAMES.items(), frames, strict=True):
        Path(__file__).with_name(name).write_text(draw(frame, width), encoding="utf-8")
        print(Text.from_ansi(frame).plain)  # noqa: T201 - what a script is for


def prepare(environment: Environment) -> None:
    """Make two tables and their objects, lose some of the objects, and enqueue."""
    rowferry("prepare", str(PICTURES), "--yes", "--clean-production")
    rowferry("init")
    s3 = environment.open_s3()
    for prefix, lost in (("image/", 2), ("cover/", 1)):
        listing = s3.list_objects_v2(Bucket="sketch-legacy-s3", Prefix=prefix, MaxKeys=lost)
        for item in listing["Contents"]:
            s3.delete_object(Bucket="sketch-legacy-s3", Key=item["Key"])
    rowferry("enqueue", "--yes", "--batch-size", "50")


def rowferry(*arguments: str) -> None:
    """Run a command; what it says is for nobody."""
    subprocess.run([sys.executable, "-m", "rowferry_cli", *arguments], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def terminals(folder: Path, command: str, frames: dict[str, tuple[int, int]]) -> Iterator[list[Callable[[], str]]]:
    """Run a command in a tmux for each picture; yield what returns the screens, with colours as escape sequences."""
    tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
    names = [name.partition(".")[0] for name in frames]
    for name, (width, height) in zip(names, frames.values(), strict=True):
        subprocess.run(
            [*tmux, "-u", "new-session", "-d", "-s", name, "-x", str(width), "-y", str(height), command],
            check=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )

    def capture(name: str) -> str:
        shown = [*tmux, "capture-pane", "-e", "-p", "-t", f"={name}:"]
        return subprocess.run(shown, check=True, capture_output=True, text=True).stdout

    try:
        yield [partial(capture, name) for name in names]
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)


def wait_for_frames(captures: list[Callable[[], str]]) -> list[str]:
    """Return the frames of the moment when the first shows the middle of the migration: errors, and batches in hand."""
    plain = ""
    give_up_at = time.monotonic() + DEADLINE.total_seconds()
    while time.monotonic() < give_up_at:
        frames = [capture() for capture in captures]
        plain = Text.from_ansi(frames[0]).plain
        shares = [int(share) for share in re.findall(r"(\d+)% ", plain)]
        if len(shares) == 3 and shares[0] >= 60 and "Latest errors" in plain and " for " in plain:
            return frames
        time.sleep(0.05)
    raise SystemExit(f"{plain}\nthe migration never showed its middle: change the numbers above")


def draw(
    frame: str, width: int, title: str = "rowferry watch", code_format: str = SVG, unique_id: str = "watch"
) -> str:
    """Return the screen as a picture."""
    console = Console(record=True, width=width, file=StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text.from_ansi(frame.rstrip("\n")), no_wrap=True, overflow="crop", crop=True)
    return console.export_svg(title=title, code_format=code_format, unique_id=unique_id)


if __name__ == "__main__":
    main()
