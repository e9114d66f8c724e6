"""Promises of a worker's log: JSON lines that say whose they are, one line a verdict, and never a secret."""

import json
import logging
import signal
from collections.abc import Iterator
from datetime import datetime
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from rowferry.logs import current_fields, log_fields, set_up_logging
from support.entries.entry_table import FROM
from support.entries.migration import Migration
from support.processes.patient_worker import patient
from support.processes.processes import wait_for
from support.s3.request_log import logged

pytestmark = pytest.mark.pythons

VERDICTS = {"batch finished", "batch released", "batch lost"}


def read_lines(log: str) -> list[dict[str, Any]]:
    """Return the lines of a log, each of which must be JSON."""
    return [json.loads(line) for line in log.splitlines()]


def check_no_secret(log: str, migration: Migration) -> None:
    secrets = [value for name, value in migration.environment.items() if name.endswith("SECRET_ACCESS_KEY")]
    secrets.append(urlsplit(migration.dsn).password or "")
    assert all(secrets)
    assert not [secret for secret in secrets if secret in log]
    assert "Signature" not in log


def test_every_line_of_a_batch_says_which_batch_attempt_and_worker(versitygw_migration: Migration) -> None:
    migration = versitygw_migration
    migration.fill(30).add_row(31, f"{FROM}nobody.png").enqueue(10)
    with migration.workers(1, "--until-empty", "--verbose") as (worker,):
        assert worker.wait() == 0
    lines = read_lines(worker.log)
    assert {line["worker"] for line in lines} == {
        row["id"] for row in migration.execute("select id from rowferry.worker")
    }
    told = [line for line in lines if line["message"] in VERDICTS | {"object copied", "row updated"}]
    assert {line["message"] for line in told} == {"batch finished", "object copied", "row updated"}
    ledger = {row["id"]: (row["batch_id"], row["number"]) for row in migration.attempts()}
    assert {ledger[line["attempt_id"]] == (line["batch"], line["attempt"]) for line in told} == {True}
    for line in told:
        if line["message"] == "row updated":
            assert line["batch"] == (int(line["id"]) - 1) // 10 + 1
        if line["message"] == "object copied":
            number = int(line["old_key"].split("/")[1][1:])
            assert line["batch"] == (number - 1) // 10 + 1
    check_no_secret(worker.log, migration)


DEAF = """
from rowferry_worker.batch import context
context.has_spoken = lambda connection: False
"""
"""A worker that hears of the end of its session only by its next statement."""


def test_each_attempt_has_one_line_with_its_verdict(migration: Migration) -> None:
    """Attempts that ended with DONE, ERROR and LOST."""
    migration.fill(10).add_row(11, f"{FROM}nobody.png")
    with logged(migration.legacy.endpoint_url) as log:
        migration.plan["legacy"]["endpoint_url"] = migration.plan["production"]["endpoint_url"] = log.endpoint_url
        migration.enqueue(10)
        with migration.workers(1, "--grace", "0", **patient(migration.folder, DEAF)) as (worker,):
            with log.holding(lambda seen: seen.writes_object and seen.bucket == migration.production.bucket):
                wait_for(lambda: len(migration.execute("select * from rowferry.claimed_batches")) >= 1)
                wait_for(lambda: [v for v in migration.verdicts() if v is None])
                migration.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where application_name like 'rowferry worker%' and datname = current_database()"
                )
            migration.wait_until_done()
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
    told = [line for line in read_lines(worker.log) if line["message"] in VERDICTS]
    assert {line["attempt_id"]: line["verdict"] for line in told} == {
        attempt["id"]: attempt["verdict"] for attempt in migration.attempts()
    }
    assert len(told) == len(migration.attempts())
    assert {line["verdict"] for line in told} == {"DONE", "ERROR", "LOST"}
    check_no_secret(worker.log, migration)


def test_a_batch_that_is_given_back_says_so_in_one_line(migration: Migration) -> None:
    migration.fill(5)
    with logged(migration.legacy.endpoint_url) as log:
        migration.plan["legacy"]["endpoint_url"] = migration.plan["production"]["endpoint_url"] = log.endpoint_url
        migration.enqueue()
        with (
            migration.workers(1, "--grace", "0", **patient(migration.folder)) as (worker,),
            log.holding(lambda seen: seen.writes_object and seen.bucket == migration.production.bucket) as held,
        ):
            wait_for(lambda: held)
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
    (told,) = [line for line in read_lines(worker.log) if line["message"] in VERDICTS]
    (attempt,) = migration.attempts()
    assert (told["batch"], told["attempt"], told["attempt_id"]) == (1, 1, attempt["id"])
    assert told["verdict"] == attempt["verdict"] == "RELEASED"


def test_times_are_utc_wherever_the_worker_is(migration: Migration) -> None:
    migration.enqueue()
    ended = migration.run("worker", "--until-empty", "--log-format", "json", TZ="Asia/Tokyo")
    times = [line["time"] for line in read_lines(ended.stderr)]
    now = datetime.now().astimezone()
    assert times
    assert all(time.endswith("Z") and abs(datetime.fromisoformat(time) - now).total_seconds() < 3600 for time in times)


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.mark.usefixtures("restored_logging")
def test_fields_belong_to_their_thread_and_end_with_their_block(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("json")
    log = logging.getLogger("rowferry.test")

    def work(batch: int) -> None:
        with log_fields(batch=batch):
            with log_fields(attempt=1):
                log.info("inner")
            log.info("outer", extra={"batch": "its own"})
        log.info("after")

    with log_fields(batch=7):
        thread = Thread(target=work, args=(8,))
        thread.start()
        thread.join()
        log.info("mine")
    assert current_fields() == {}
    lines = {line["message"]: line for line in read_lines(capsys.readouterr().err)}
    found = {message: (line.get("batch"), line.get("attempt")) for message, line in lines.items()}
    assert found == {"inner": (8, 1), "outer": ("its own", None), "after": (None, None), "mine": (7, None)}


@pytest.mark.usefixtures("restored_logging")
def test_words_for_people_name_batch_and_attempt_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("text")
    with log_fields(batch=7, attempt=2, attempt_id=99):
        logging.getLogger("rowferry.test").info("object copied", extra={"ms": 3})
    assert capsys.readouterr().err.endswith(" object copied  ms=3 batch=7 attempt=2\n")
