"""Run every test of a day once under measurement, choose, and write tests/quick.toml; `--again` chooses anew."""

import json
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import coverage

from quick.children import FOLDER, ROOT
from quick.choose import Recorded, choose

LIST = ROOT / "tests" / "quick.toml"
HOOK = Path(sysconfig.get_path("purelib")) / "rowferry-quick.pth"
"""Lets each Python of the environment run `children` while it is there."""
CHEAP_SECONDS = 0.3
"""What a test without a server or process may cost, to be quick without being chosen."""
BUDGET_SECONDS = 120.0
"""What the chosen tests cost together, measured: without the measurement it is less."""
HEAD = """\
# Which tests `make test` runs. Written by `make quick-list`; edit nothing here: a test that has to be quick is marked
# `must`. Of tests that start no server and no process, all are quick but those listed as dear. Of the others, those
# listed as chosen are: they reach most of the product for what they cost. Files without a quick test are not read.
"""


def main() -> None:
    if sys.argv[1:] != ["--again"]:
        record()
    tests, marks = read_recorded()
    LIST.write_text(HEAD + compose(tests, marks), encoding="utf-8")


def record() -> None:
    """Run the tests; those that fail under measurement reach what they reach, and count as well."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    HOOK.write_text(f"{ROOT / 'tools'}\nimport quick.children\n", encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "quick.record"]
        subprocess.run(command, cwd=ROOT, check=False)
    finally:
        HOOK.unlink()
    data = coverage.CoverageData(str(FOLDER / "all"))
    for part in FOLDER.glob("data.*"):
        other = coverage.CoverageData(str(part))
        other.read()
        data.update(other)
    data.write()


def read_recorded() -> tuple[list[Recorded], Mapping[str, list[str]]]:
    """Return each test that ran, and its marks."""
    reached = read_reached(FOLDER / "all")
    lines = [json.loads(line) for file in FOLDER.glob("tests-*.jsonl") for line in file.open(encoding="utf-8")]
    tests = [
        Recorded(line["test"], line["cpu_seconds"], reached[line["test"]], frozenset(line["sql"]))
        for line in sorted(lines, key=lambda line: line["test"])
    ]
    return tests, {line["test"]: line["marks"] for line in lines}


def read_reached(file: Path) -> Mapping[str, int]:
    """Return for each test the branches that it reaches, a bit each."""
    reached: dict[str, int] = defaultdict(int)
    places: dict[tuple[int, int, int], int] = {}
    query = "select context, file_id, fromno, tono from arc join context on context.id = context_id"
    with sqlite3.connect(file) as connection:
        for test, *place in connection.execute(query):
            reached[test] |= 1 << places.setdefault((place[0], place[1], place[2]), len(places))
    return reached


def compose(tests: Iterable[Recorded], marks: Mapping[str, list[str]]) -> str:
    """Return the list: what is dear of the fast, what is chosen of the others, files of which nothing is quick."""
    musts = [test for test in tests if "must" in marks[test.test]]
    fast = [test for test in tests if marks[test.test] == ["fast"]]
    cheap = [test for test in fast if test.cpu_seconds <= CHEAP_SECONDS]
    others = [test for test in tests if not marks[test.test]]
    chosen = choose([*musts, *cheap], [*others, *(test for test in fast if test not in cheap)], BUDGET_SECONDS)
    dear = {test.test for test in fast} - {test.test for test in cheap} - {*chosen}
    quick = {test.test for test in (*musts, *cheap)} | {*chosen}
    unread = {file_of(test.test) for test in tests} - {file_of(test) for test in quick}
    left = sum(test.test not in quick for test in tests)
    return (
        f"\nleft_out = {left}\n"
        + compose_list("unread", sorted(unread))
        + compose_table("dear", dear)
        + compose_table("chosen", set(chosen) - {test.test for test in fast})
    )


def compose_table(name: str, tests: Iterable[str]) -> str:
    """Return a table of TOML: each file, and its tests."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests):
        file, _, rest = test.partition("::")
        files[file].append(rest)
    return f"\n[{name}]\n" + "".join(compose_list(json.dumps(file), named) for file, named in files.items())


def compose_list(name: str, texts: Iterable[str]) -> str:
    return f"{name} = [\n" + "".join(f"  {json.dumps(text, ensure_ascii=False)},\n" for text in texts) + "]\n"


def file_of(test: str) -> str:
    return test.partition("::")[0]


if __name__ == "__main__":
    main()
