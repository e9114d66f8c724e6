"""Runs mutants: one stand a module, as many side by side as asked for."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mutants.job import Job, Task
from mutants.modules import Module
from mutants.mutant import Mutant, digest
from mutants.results import Result, Results, digest_tests

HERE = Path(__file__).parent
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Events:
    """What is called as a run goes on, from the thread of a module."""

    began: Callable[[Module, int], object]
    tried: Callable[[Module, Mutant, Result], object]
    broken: Callable[[Module, dict[str, Any]], object]


def run_modules(
    chosen: dict[Module, list[Mutant]], results: Results, events: Events, *, jobs: int, leaves_out_failing: bool
) -> None:
    """Run the mutants of each module and keep what comes of them."""
    with ThreadPoolExecutor(jobs) as pool:
        for run in [
            pool.submit(run_module, module, mutants, results, events, leaves_out_failing=leaves_out_failing)
            for module, mutants in chosen.items()
        ]:
            run.result()


def run_module(
    module: Module, mutants: list[Mutant], results: Results, events: Events, *, leaves_out_failing: bool
) -> None:
    """Run the mutants of one module in a stand of its own."""
    events.began(module, len(mutants))
    by_place = {mutant.place: mutant for mutant in mutants}
    code = {path: digest(module.root / path) for path in module.files}
    with TemporaryDirectory(prefix="mutants-") as folder:
        job = write_job(module, mutants, Path(folder), leaves_out_failing=leaves_out_failing)
        for line in run_stand(module, job, Path(folder)):
            if "place" in line:
                mutant = by_place[line["place"]]
                by = str(line["by"])
                result = Result(
                    module.name, mutant.place, code[mutant.path], digest_tests(module, by), line["verdict"], by,
                    line["ran"], round(line["seconds"], 1),
                )  # fmt: skip
                results.add(result)
                events.tried(module, mutant, result)
            elif line.get("broken") or line.get("failed"):
                events.broken(module, line)


def write_job(module: Module, mutants: list[Mutant], folder: Path, *, leaves_out_failing: bool) -> Job:
    """Write the file of a stand's job."""
    job = Job(
        root=str(module.root),
        files=list(module.files),
        tests=list(module.tests),
        processes=list(module.processes),
        results=str(folder / "results.jsonl"),
        baseline=str(module.root / "build" / "mutants" / f"{module.name}.json"),
        leaves_out_failing=leaves_out_failing,
        tasks=[
            Task(
                place=mutant.place,
                path=mutant.path,
                line=mutant.line,
                last_line=mutant.last_line,
                text=mutant.write(),
            )
            for mutant in mutants
        ],
    )
    job.write(folder / "job.json")
    return job


def run_stand(module: Module, job: Job, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what a stand says, as it says it; raises nothing where it dies, but says that it is broken."""
    log = module.root / "build" / "mutants" / f"{module.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(HERE / "site"), str(HERE.parent), str(module.root / "tests")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    if any(name.endswith(".sql") for name in module.files):
        environment["ROWFERRY_TEST_POSTGRES"] = environment.get("ROWFERRY_TEST_POSTGRES", "18")
    results, read, spoke = Path(job.results), 0, False
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            [sys.executable, "-m", "mutants.stand", str(folder / "job.json")],
            cwd=module.root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        ) as stand,
    ):  # fmt: skip
        running = True
        while running:
            running = stand.poll() is None
            text = results.read_text(encoding="utf-8") if results.exists() else ""
            complete = text[read : text.rfind("\n") + 1]
            read += len(complete)
            for line in complete.splitlines():
                spoke = True
                yield json.loads(line)
            time.sleep(LOOK_SECONDS if running else 0)
    if not spoke:
        yield {"broken": f"the stand ended with status {stand.returncode}; see {log.relative_to(module.root)}"}
