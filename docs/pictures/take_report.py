"""Takes docs/pictures/report.png: the head of `rowferry report --html` of a real migration, by Chromium.

Run it from the checkout: `make pictures`, or alone after it: `PYTHONPATH=dashboards .venv/bin/python
docs/pictures/take_report.py`.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from take_watch import SECOND_TABLE, prepare

from drawing.smaller import write_smaller
from rowferry_lab.simulated.environment import Environment, start_environment

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("report.png")
CHROMIUMS = ("chromium", "chromium-browser", "chromium-headless-shell")
REST_OF_PLAN = f"""{SECOND_TABLE}
[database]
max_rows_per_second = 120

[queue.migrate]
then = ["verify"]
"""


def main() -> None:
    """Migrate 2,000 entries of two tables, of which three objects are lost, and verify them; then take the picture."""
    with start_environment() as environment:
        environment.plan_path.write_text(environment.plan_path.read_text() + REST_OF_PLAN)
        prepare(environment)
        work("worker-1", "worker-2")
        shoot(write_page(environment))


def work(*hosts: str) -> None:
    """Run a worker for each host until nothing is left to do; what fails for good is in ERROR then."""
    command = [sys.executable, "-m", "rowferry_cli", "worker", "--until-empty", "--processes", "1", "--host-name"]
    workers = [subprocess.Popen([*command, host], stdout=subprocess.DEVNULL) for host in hosts]
    for worker in workers:
        worker.wait()


def write_page(environment: Environment) -> Path:
    """Write the report, whose exit status says that batches are in ERROR."""
    page = environment.folder / "report.html"
    command = [sys.executable, "-m", "rowferry_cli", "report", "--html", str(page)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return page


def shoot(page: Path) -> None:
    """Let Chromium draw its head, dark, as most of the other pictures are."""
    node, chromium = shutil.which("node"), next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if node is None or chromium is None:
        raise SystemExit("Node.js or Chromium is not on PATH: run `make test-pages` first")
    script = ROOT / "tests" / "support" / "browser" / "shoot.mjs"
    subprocess.run([node, str(script), chromium, page.as_uri(), str(PICTURE)], check=True, timeout=120)
    write_smaller(PICTURE, PICTURE)


if __name__ == "__main__":
    main()
