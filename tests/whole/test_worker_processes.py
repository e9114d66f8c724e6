"""Real worker processes share a queue, and whatever ends one of them, every entry is migrated exactly once."""

import signal
from collections import Counter

import pytest

from support.entries.migration import Migration
from support.processes.patient_worker import patient
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog, writes_of


def written(log: RequestLog) -> list[str]:
    """Return the keys of all writes of objects so far."""
    return [seen.key for seen in log.seen if seen.writes_object]


@pytest.mark.soak
def test_eight_workers_migrate_every_entry_exactly_once(migration: Migration, log: RequestLog) -> None:
    migration.given(400, 10)
    migration.execute("update rowferry.migration set paused_at = now()")
    with migration.workers(8, "--parallel", "8") as workers:
        eventually(lambda: len(migration.execute("select from rowferry.live_workers")) == 8)
        with log.holding(lambda seen: seen.writes_object):  # lest the first be done before the last has woken up
            migration.execute("update rowferry.migration set paused_at = null")
            eventually(lambda: len({attempt["worker_id"] for attempt in migration.attempts()}) == 8)
        migration.wait_until_done()
        for worker in workers:
            worker.signal(signal.SIGTERM)
        assert [worker.wait() for worker in workers] == [0] * 8
    assert migration.counts() == {"migrated": 400}
    assert migration.verdicts() == ["DONE"] * 40
    writes = Counter(written(log))
    assert set(writes) == {f"avatar/u{number}/me.png" for number in range(1, 401)}
    assert writes.total() <= 400 + 8, "a worker writes one object twice, to learn whether the condition is heeded"
    migration.audit()


@pytest.mark.must("a killed worker")
def test_a_killed_worker_gives_its_batch_back(migration: Migration, log: RequestLog) -> None:
    """Killed between copy and commit: another, which has waited for more work, takes over and copies nothing twice."""
    migration.given(60, 20)
    in_the_middle = log.holding(writes_of(range(31, 41)), where="answer")
    with migration.workers(1, "--max-batches=1", "--min-parallel=16") as (victim,), in_the_middle as held:
        eventually(lambda: {seen.key for seen in held} == {f"avatar/u{number}/me.png" for number in range(31, 41)})
        with migration.workers(1, "--until-empty") as (heir,):
            eventually(lambda: [batch["status"] for batch in migration.batches()] == ["DONE", "INIT", "DONE"])
            victim.signal(signal.SIGKILL)
            assert victim.wait() == -signal.SIGKILL
            copied = written(log)
            assert heir.wait() == 0
    assert migration.counts() == {"migrated": 40, "kept": 20}
    verdicts = Counter(migration.verdicts())
    del verdicts["RELEASED"]  # put back until it was clear that the victim was dead
    assert verdicts == {"DONE": 3, None: 1}
    assert written(log) == copied, "the heir has copied what the victim had copied"
    assert set(copied) == {f"avatar/u{number}/me.png" for number in range(1, 61)}
    migration.audit()


def test_a_first_signal_finishes_claimed_batches_and_nothing_more(migration: Migration, log: RequestLog) -> None:
    migration.given(60, 20)
    with migration.workers(1, "--max-batches=1") as (worker,):
        with log.holding(writes_of(range(31, 41))) as held:
            eventually(lambda: held)
            worker.signal(signal.SIGTERM)
            eventually(lambda: worker.heard_signals() == 1)
        assert worker.wait() == 0
    assert [batch["status"] for batch in migration.batches()] == ["DONE", "DONE", "INIT"]
    assert migration.verdicts() == ["DONE", "DONE"]
    assert migration.counts() == {"migrated": 40}
    migration.audit(legacy_left=range(41, 61))


@pytest.mark.by_day("INT-TERM")
@pytest.mark.parametrize(
    ("options", "signals"),
    [
        ((), (signal.SIGTERM, signal.SIGTERM)),
        ((), (signal.SIGINT, signal.SIGTERM)),
        (("--grace=0",), (signal.SIGTERM,)),
    ],
    ids=["TERM-TERM", "INT-TERM", "grace-is-over"],
)
def test_a_second_signal_releases_claimed_batches_without_costing_an_attempt(
    options: tuple[str, ...], signals: tuple[signal.Signals, ...], migration: Migration, log: RequestLog
) -> None:
    migration.given(60, 20)
    with (
        migration.workers(1, "--max-batches=2", *options, **patient(migration.folder)) as (worker,),
        log.holding(writes_of(range(61))) as held,
    ):
        eventually(lambda: len(migration.attempts()) == 2 and held)
        for heard, number in enumerate(signals):
            eventually(lambda heard=heard: worker.heard_signals() == heard)
            worker.signal(number)
        assert worker.wait() == 0
        assert migration.verdicts() == ["RELEASED", "RELEASED"]
        assert [(batch["status"], batch["attempts"]) for batch in migration.batches()] == [("INIT", 0)] * 3
        migration.audit(legacy_left=range(1, 61))
    migration.work()
    assert sum(migration.counts().values()) == 60
    assert {attempt["number"] for attempt in migration.attempts()} == {1}
    migration.audit()


@pytest.mark.pythons
def test_a_worker_waits_for_work_that_comes_later(migration: Migration) -> None:
    with migration.workers(1) as (worker,):
        eventually(lambda: "worker started" in worker.messages())
        migration.given(3)
        migration.wait_until_done()
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    migration.audit()


def test_a_worker_that_cannot_work_says_why_and_leaves_the_batch(versitygw_migration: Migration) -> None:
    """A bucket that is gone is the same: tests/worker/test_set_aside.py."""
    migration = versitygw_migration.given(2)
    done = migration.run("worker", "--until-empty", ROWFERRY_PRODUCTION_SECRET_ACCESS_KEY="wrong")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "rowferry: Migration avatars cannot be worked on here: "
        f"The production bucket {migration.plan['production']['bucket']} cannot be used:"
    )
    assert "Traceback" not in done.stderr
    assert (migration.batch()["status"], migration.batch()["attempts"]) == ("INIT", 0)
    assert set(migration.verdicts()) <= {"RELEASED"}
    migration.audit(legacy_left=[1, 2])
