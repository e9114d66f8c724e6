"""A worker that was killed is known to be dead at once by the other processes of its kernel, and by no others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from psycopg.types.json import Jsonb

from rowferry.db.connection import connect
from rowferry_worker.attempts import AttemptRecorder
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring import kernel
from rowferry_worker.monitoring.kernel import describe_process, has_ended, tells_ends
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.worker_process import eventually
from support.queue.held_batches import claim
from support.s3.request_log import RequestLog

pytestmark = pytest.mark.skipif(not tells_ends(), reason="this kernel does not say that a process has ended")
SESSIONS = "select 1 from pg_stat_activity where application_name ~ '^rowferry (worker|ledger)'"
SLEEP = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another process."""
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def describe(process: subprocess.Popen[bytes]) -> str:
    described = describe_process(process.pid)
    assert described is not None
    return described


def test_a_process_has_ended_once_it_was_killed_whether_or_not_its_parent_has_heard(
    other: subprocess.Popen[bytes],
) -> None:
    described = describe(other)
    assert not has_ended(described)
    other.kill()
    eventually(lambda: has_ended(described))
    other.wait(60)
    assert has_ended(described)
    assert describe_process(other.pid) is None


def test_another_process_with_the_same_id_is_another_and_a_python_without_the_call_cannot_tell(
    other: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, start = describe(other).rsplit("/", 1)
    assert has_ended(f"{kernel}/{int(start) - 1}")
    described = describe(other)
    other.kill()
    other.wait(60)
    monkeypatch.delattr(os, "pidfd_open")
    assert not has_ended(described)
    assert not tells_ends()


ODD = ["x", "", "{0}", "{0}/", "{0}/x/1", "{0}/-1/1", "{0}/0/1", "{0}/99999999999999999999/1", "{0}/1/2/3"]


@pytest.mark.parametrize("odd", ODD)
def test_what_another_worker_has_told_may_be_anything(other: subprocess.Popen[bytes], odd: str) -> None:
    namespace = describe(other).rsplit("/", 2)[0]
    assert not has_ended(odd.format(namespace))


def test_a_process_whose_start_is_hidden_runs_until_the_kernel_says_that_it_has_ended(
    other: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    described = describe(other)
    monkeypatch.setattr(kernel, "_read_start", lambda _pid: None)
    assert not has_ended(described)
    other.kill()
    eventually(lambda: has_ended(described))


@pytest.mark.parametrize("place", [0, 1, 2], ids=["kernel", "process ids", "times"])
def test_nothing_is_known_of_the_processes_of_another_kernel_or_namespace(
    other: subprocess.Popen[bytes], place: int
) -> None:
    words = describe(other).split("/")
    words[place] = words[place][::-1] + "1"
    other.kill()
    other.wait(60)
    assert not has_ended("/".join(words))


def test_an_attempt_of_a_worker_that_has_ended_counts_as_a_crash_at_once(
    ten: EntryTable, other: subprocess.Popen[bytes]
) -> None:
    with closing(Ledger("silent")) as silent, connect("silent") as connection:
        silent.call("heartbeat", "silent", "h", 1, "0", 1, 1, ["migrate"], Jsonb({}), describe(other))
        batch = claim(connection)
        AttemptRecorder(silent, "silent").begin(batch)
        connection.rollback()
    with closing(Ledger("other")) as ledger:
        attempts = AttemptRecorder(ledger, "other")
        before = attempts.begin(batch)
        assert before.unclear_for is not None
        assert before.silent_workers == {"silent": describe(other)}
        assert not attempts.note_ended(before.silent_workers), "it runs"
        other.kill()
        eventually(lambda: attempts.note_ended(before.silent_workers))
        assert attempts.note_ended(before.silent_workers), "so other batches that it held need not wait either"
        after = attempts.begin(batch)
    assert (after.crashes, after.number, after.unclear_for, after.silent_workers) == (1, 2, None, {})


def test_the_batch_of_a_killed_worker_is_run_by_its_neighbour_without_a_wait(
    migration: Migration, log: RequestLog
) -> None:
    migration.given(1, 1)
    with log.holding(lambda seen: seen.writes_object) as held, migration.workers(1) as (worker,):
        eventually(lambda: held)
        worker.kill()
        worker.wait()
    eventually(lambda: not migration.execute(SESSIONS))  # PostgreSQL has noticed, too
    migration.work()
    assert migration.verdicts() == [None, "RELEASED", "DONE"]
    _, released, done = migration.attempts()
    assert released["error"] == "its previous worker has ended: it is run as one that has crashed a worker"
    assert done["number"] == 2
    migration.audit()
