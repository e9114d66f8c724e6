"""A user's function gets a readable stream; whatever it does is its object's matter, and ends in time."""

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowferry.functions import ALLOWED_FUNCTIONS, forget_functions
from rowferry.http import event_loop
from rowferry_queues.inspect.computing_process import inspect_in_process
from rowferry_queues.inspect.spec import InspectSettings, MiB
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.processes.processes import is_running, wait_for
from support.queue.inspected import MODULE, add, end_processes, run, use, words_of


@pytest.fixture
def site(moto_migration: Migration, monkeypatch: pytest.MonkeyPatch) -> Migration:
    monkeypatch.setenv(ALLOWED_FUNCTIONS, MODULE)
    end_processes()
    moto_migration.execute("alter table public.avatars add words text, add name text, add lines int")
    return moto_migration


def test_a_function_reads_lines_of_what_is_inflated(site: Migration) -> None:
    """Whole bodies and streams, beside what is computed here."""
    use(site, "count_words", columns={"words": "words", "name": "name", "lines": "lines"})
    lines = b"some words of text\n" * 50_000
    noise = os.urandom(300_000).hex().encode() + b"\n"
    for number, body in enumerate([b"one two\nthree", gzip.compress(lines), gzip.compress(noise), b""]):
        add(site, number, body)
    assert run(site) == {"migrated": 4}
    assert words_of(site) == {0: "3", 1: "200000", 2: "1", 3: "0"}
    rows = site.execute("select name, lines from public.avatars order by id")
    assert [tuple(row.values()) for row in rows] == [(f"{TO}0", 2), (f"{TO}1", 50_000), (f"{TO}2", 1), (f"{TO}3", 0)]


def test_a_function_need_not_read_all(site: Migration) -> None:
    use(site, "read_first", columns={"words": "words", "lines": "lines"})
    body = b"abc\n" + os.urandom(MiB).hex().encode()
    add(site, 1, body)
    assert run(site) == {"migrated": 1}
    assert site.execute("select words, lines from public.avatars") == [{"words": "abc", "lines": 2}]
    use(site, "read_first")
    add(site, 2, b"xyz" + body)
    site.execute("truncate rowferry.batch_queue cascade")
    assert run(site) == {"migrated": 1, "kept": 1}
    assert words_of(site)[2] == "xyz"


FAULTS = {
    "fail": ("FunctionFailed", "the function failed with KeyError: 'body'"),
    "return_list": ("FunctionFailed", "it returned list, not a dict"),
    "return_other": ("FunctionFailed", "it returned wrods, but no words"),
    "return_much": ("FunctionFailed", "more than 1048576 bytes"),
    "return_much_in_a_list": ("FunctionFailed", "more than 1048576 bytes"),
    "leave": ("FunctionFailed", "SystemExit"),
}


def test_a_function_that_fails_is_the_failure_of_its_object(site: Migration, subtests: pytest.Subtests) -> None:
    for number in range(3):
        add(site, number, b"body")
    for function, (reason, words) in FAULTS.items():
        use(site, function)
        site.execute("truncate rowferry.batch_queue cascade")
        with subtests.test(function):
            assert run(site) == {"failed": 3}
            assert site.verdicts()[-1] == "ERROR"
            _, told, error = site.failure_of(1)
            assert told == reason
            assert words in error


def test_what_a_function_makes_of_an_unreadable_object_does_not_count(site: Migration) -> None:
    use(site, "swallow")
    add(site, 1, gzip.compress(b"content")[:-4])
    add(site, 2, gzip.compress(os.urandom(MiB))[:-4])
    add(site, 3, b"good")
    assert run(site) == {"migrated": 1, "failed": 2}
    assert words_of(site) == {1: None, 2: None, 3: "4"}
    assert {site.failure_of(number)[1] for number in (1, 2)} == {"TruncatedContent"}


@pytest.mark.parametrize("function", ["spin", "hang", "hold_the_lock"])
def test_a_function_that_does_not_end_is_given_up(site: Migration, function: str) -> None:
    """Whatever it does, and however many do so: the next calls are as the first."""
    use(site, function, function_seconds=0.2)
    add(site, 1, b"body")
    add(site, 2, os.urandom(MiB))
    for number in range(3, 10):
        add(site, number, b"body")
    assert run(site) == {"failed": 9}
    assert site.failure_of(1)[1:] == (
        "FunctionTimedOut",
        "FunctionTimedOut: the function did not end within 0.2 s (function_seconds)",
    )
    assert site.verdicts() == ["ERROR"]


def test_the_wait_for_bytes_is_not_the_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the import of its module."""
    monkeypatch.setenv(ALLOWED_FUNCTIONS, "support.queue.slow_module")
    end_processes()

    def wait() -> Iterator[bytes]:
        for _ in range(3):
            time.sleep(0.15)
            yield b"word "

    function = "support.queue.slow_module:count_words"
    settings = InspectSettings(columns={"words": "words"}, function=function, function_seconds=0.2)
    found = event_loop.run(inspect_in_process(wait(), settings, "key"))
    assert found == {"words": 3}
    end_processes()


def test_a_function_that_ends_its_process_is_the_failure_of_its_object(site: Migration) -> None:
    use(site, "end_process")
    add(site, 1, b"body")
    add(site, 2, b"good")
    assert run(site) == {"migrated": 1, "failed": 1}
    assert site.failure_of(1)[1] == "FunctionFailed"


def test_processes_end_with_the_worker_even_where_a_function_does_not(tmp_path: Path) -> None:
    """It is killed; its process notices within a second or two."""
    script = (
        "from rowferry_queues.inspect.computing_process import ComputingProcess\n"
        "from rowferry_queues.inspect.spec import InspectSettings\n"
        f"settings = InspectSettings(columns={{'words': 'words'}}, function='{MODULE}:tell_and_spin')\n"
        f"ComputingProcess().call(iter([b'x']), settings, {str(tmp_path / 'pid')!r})\n"
    )
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), ALLOWED_FUNCTIONS: MODULE}
    with subprocess.Popen([sys.executable, "-c", script], env=os.environ | environment) as parent:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        parent.kill()
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not is_running(pid))


def test_a_function_must_be_there_and_allowed(site: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_functions()
    use(site, "not_there")
    add(site, 1, b"body")
    site.write_plan()
    said = site.run("check").stdout
    assert f"The function {MODULE}:not_there cannot be loaded (AttributeError" in said
    use(site, "count_words")
    site.write_plan()
    said = site.run("check", **{ALLOWED_FUNCTIONS: "others, more:one"}).stdout
    assert f"{MODULE}:count_words is not among those that {ALLOWED_FUNCTIONS} allows" in said
    assert run(site) == {"migrated": 1}
    forget_functions()
    site.execute("truncate rowferry.batch_queue cascade")
    site.enqueue(queue="inspect")
    monkeypatch.setenv(ALLOWED_FUNCTIONS, f"{MODULE}:read_first")
    with site.at_work(queues=["inspect"]) as take_turn:
        take_turn()
    assert site.verdicts()[-1] == "RELEASED"
    forget_functions()
