"""Records what a first migration prints, for docs/first-migration.md: a dry run, the migration and its errors.

Run it from the checkout: `.venv/bin/python docs/pictures/take_migration.py`.
"""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.simulated.environment import Environment, start_environment

PAGE = Path(__file__).parents[1] / "first-migration.md"
BLOCK = re.compile(r"(<!-- taken: (?P<command>[^>]+) -->\n```text\n).*?(^```$)", re.DOTALL | re.MULTILINE)
SHOWN_FROM = {"migrate --yes": "Rows change"}
"""How the first line begins that the page shows of a command: what a dry run prints as well is left out."""
LATENCY = timedelta(milliseconds=20)


def main() -> None:
    """Make rows and objects, lose one of the objects, run each command of the page, and put what it prints there."""
    s3_server = FakeS3Server()
    with start_environment(lambda: s3_server) as environment:
        run(environment, "prepare 4000 --yes --clean-production")
        lose_an_object(environment)
        s3_server.set_latency(LATENCY)
        text = BLOCK.sub(
            lambda found: found[1] + run(environment, found["command"]) + found[3], PAGE.read_text("utf-8")
        )
    PAGE.write_text(text, encoding="utf-8")


def lose_an_object(environment: Environment) -> None:
    s3 = environment.open_s3()
    first = s3.list_objects_v2(Bucket="sketch-legacy-s3", Prefix="image/", MaxKeys=1)["Contents"][0]
    s3.delete_object(Bucket="sketch-legacy-s3", Key=first["Key"])


def run(environment: Environment, command: str) -> str:
    """Return what a command prints in the folder of the environment, without blanks at the ends of lines."""
    words = [sys.executable, "-m", "rowferry_cli", *command.split()]
    done = subprocess.run(
        words, cwd=environment.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith(SHOWN_FROM.get(command, "")))
    return "".join(f"{line}\n" for line in lines[first:])


if __name__ == "__main__":
    main()
