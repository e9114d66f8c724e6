"""The house is in order: who may import, open and name what, and how long a file may be."""

import re
import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).parent.parent
PACKAGES = ("rowferry", "enqueue", "worker")
LONGEST_FILE_LINES = 250
SQL_FUNCTIONS = sorted((HOUSE / "sql" / "functions").glob("*.sql"))
SQL_VIEWS = sorted((HOUSE / "sql" / "views").glob("*.sql"))
PYTHON_FILES = sorted(path for package in PACKAGES for path in (HOUSE / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(HOUSE).as_posix()


def files_that_say(pattern: str) -> set[str]:
    """Return the files of the packages in which the pattern occurs."""
    return {name_of(path) for path in PYTHON_FILES if re.search(pattern, path.read_text(encoding="utf-8"))}


def test_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache", "--no-logo"], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_only_one_file_opens_connections_to_postgresql() -> None:
    assert files_that_say(r"\b(Connection|psycopg|choose_connection\(.*\))\.connect\(|ConnectionPool\(") == {
        "rowferry/database.py"
    }


def test_only_one_file_reads_http_and_one_runs_the_event_loop() -> None:
    assert files_that_say(r"(?m)^\s*(import|from) httptools\b") == {"rowferry/http_answer.py"}
    assert files_that_say(r"(?m)^\s*(import|from) uvloop\b") == {"rowferry/event_loop.py"}


def test_only_one_file_names_the_metrics_of_a_worker() -> None:
    declared = files_that_say(r"\b(Counter|Gauge|Histogram)\(\s*\"rowferry_")
    assert declared == {"worker/rowferry_worker/metrics.py"}


def test_sql_is_written_in_sql_files_only() -> None:
    statements = r"\"\s*(select .+ from |insert into |update \w+ set |delete from )"
    assert files_that_say(statements) == set()


def test_every_function_and_view_is_named_after_its_file_and_introduces_itself() -> None:
    for path in SQL_FUNCTIONS + SQL_VIEWS:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"-- rowferry.{path.stem}"), path
        assert re.search(rf"(?m)^create or replace (function|view) rowferry\.{path.stem}\b", text), path


def test_every_function_says_what_it_writes_and_who_calls_it() -> None:
    for path in SQL_FUNCTIONS:
        header = path.read_text(encoding="utf-8").partition("create or replace")[0]
        assert "--   Writes: " in header, path
        assert "Called by: " in header, path


def test_no_function_runs_with_the_search_path_of_its_caller() -> None:
    """Else a caller could slip a table of its own under a function that runs with the owner's rights."""
    without = [path.name for path in SQL_FUNCTIONS if "set search_path = pg_catalog, pg_temp" not in path.read_text()]
    assert without == []


def test_functions_call_only_functions_that_are_there() -> None:
    called = set(
        re.findall(r"\b(?:call|\.call)\(\s*(?:\w+,\s*)?\"(\w+)\"", "\n".join(map(Path.read_text, PYTHON_FILES)))
    )
    assert called
    assert called <= {path.stem for path in SQL_FUNCTIONS}


def test_every_statement_is_used_and_every_used_statement_is_there() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in PYTHON_FILES)
    there = {path.stem for path in (HOUSE / "sql" / "statements").glob("*.sql")}
    composed = {f"is_{form}" for form in re.findall(r"has_form\(\"(\w+)\"\)", code)}
    assert there - set(re.findall(r"\"(\w+)\"", code)) - composed == set()
    assert set(re.findall(r"\bstatement\(\s*\"(\w+)\"", code)) | composed <= there


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [int(path.stem.split("_")[0]) for path in sorted((HOUSE / "sql" / "migrations").glob("*.sql"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    sql = (HOUSE / "sql").rglob("*.sql")
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in (*PYTHON_FILES, *sql)}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE_LINES} == {}


def test_every_module_says_in_its_first_line_what_it_is_for() -> None:
    first_lines = {name_of(path): path.read_text(encoding="utf-8").partition("\n")[0] for path in PYTHON_FILES}
    assert {name: line for name, line in first_lines.items() if not re.match(r'r?"""[^"]{10}', line)} == {}
