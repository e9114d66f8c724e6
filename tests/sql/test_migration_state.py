"""What the view says of a migration: its state, what holds it, what to type, its rate and its time left."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.queue.lines import Lines
from support.queue.rows import add, add_worker, change

MIGRATIONS = ("m",)

Step = Callable[[Lines], object] | dict[str, Any]
"""Changes the queue, or says what columns of rowferry.migration_state must hold then."""


def batch(queue: str, entries: int, status: str = "INIT") -> Step:
    return lambda lines: add(lines, queue, entries, status)


def worker(*queues: str, name: str = "host-a", silent: str = "0 s") -> Step:
    return lambda lines: add_worker(lines, *queues, name=name, silent=silent)


def to(table: str, assignment: str) -> Step:
    return lambda lines: change(lines, table, assignment)


def run(statement: str) -> Step:
    return lambda lines: lines.session.execute(statement.encode())


def steer(queue: str, assignment: str) -> Step:
    return lambda lines: lines.steer(("m", queue), assignment)


def put_back(ago: str, outcomes: str = '{"migrated": 0, "kept": 0}', error: str = "HTTP 503") -> Step:
    """Release the newest batch so long ago."""
    return run(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at, finished_at, verdict, "
        f"error, outcomes) select max(id), 0, 1, 'host-a', now(), now() - interval '{ago}', 'RELEASED', '{error}', "
        f"nullif('{outcomes}', '')::jsonb from rowferry.batch_queue"
    )


def why(state: str, cause: str, what_to_do: str) -> Step:
    return {"state": state, "cause": cause, "what_to_do": what_to_do}


def ago(**time: float) -> Any:
    """Stand for a time that lies so far back."""
    return timedelta(**time)


def register(queues: str) -> Step:
    return run(f"select rowferry.register_migration('m', '{{}}', '{queues}')")


TWO = register('{"copy": {}, "tag": {}}')
NO_WORKERS = {"state": "no_workers"}
RUNNING, WAITING, PAUSED, STALLED = ({"state": state} for state in ("running", "waiting", "paused", "stalled"))
COPYING = (batch("copy", 100), worker("copy"))
RESUME = run("select rowferry.set_pause(false, 'm')")
LONG_REASON = f"AccessDenied: {'no ' * 100}; give the legacy credentials s3:GetObject"
NEXT = {year: datetime(year, 1, 1, tzinfo=UTC) for year in (2098, 2099)}

STORIES: dict[str, Sequence[Step]] = {
    "a migration without batches waits": [{"state": "waiting", "waiting": 0, "seconds_left": None, "done_share": None}],
    "a migration runs while a worker serves it and a batch is due": [
        *(batch("copy", 100), NO_WORKERS),
        *(worker("verify"), NO_WORKERS),
        *(worker("verify", "copy", name="host-b"), RUNNING),
        *(to("worker", "last_seen_at = now() - interval '31 s'"), NO_WORKERS),
    ],
    "a migration waits while all its batches wait for their next attempt": [
        *COPYING,
        to("batch_queue", "run_after = now() + interval '1 h'"),
        {"state": "waiting", "seconds_left": None},
    ],
    "a paused migration is paused, whichever workers live": [
        *(batch("copy", 100), batch("copy", 100, "DONE")),
        to("migration", "paused_at = now(), pause_reason = 'the bucket is gone'"),
        {"state": "paused", "pause_reason": "the bucket is gone", "seconds_left": None, "paused_at": ago()},
        worker("copy"),
        {"state": "paused", "pause_reason": "the bucket is gone", "seconds_left": None, "paused_at": ago()},
    ],
    "a migration is paused when each queue with work is": [
        *(TWO, batch("copy", 100), batch("tag", 100), worker("copy", "tag")),
        *(steer("copy", "paused_at = now()"), RUNNING),
        *(steer("tag", "paused_at = now()"), PAUSED),
    ],
    "a finished migration is done or needs an operator even without workers": [
        batch("copy", 100, "DONE"),
        {"state": "done", "needs_operator": 0, "done_share": 1, "seconds_left": None},
        batch("copy", 12, "ERROR"),
        {"state": "needs_operator", "needs_operator": 12, "waiting": 0, "done_share": pytest.approx(100 / 112)},
    ],
    "entries set to ERROR by hand need an operator": [
        *(batch("copy", 5), to("batch_queue", "status = 'ERROR'")),
        {"state": "needs_operator", "needs_operator": 5},
    ],
    "a listing in ERROR needs an operator though it has no entries": [
        *(batch("copy", 0), {"waiting": 0, "batches_init": 1}),
        to("batch_queue", "status = 'ERROR', finished_at = now()"),
        {"state": "needs_operator", "needs_operator": 1, "batches_init": 0},
    ],
    "the next attempt is told while none is due": [
        *(TWO, batch("copy", 100), {"next_at": None}, batch("tag", 100)),
        *(to("batch_queue", "run_after = '2099-01-01Z' where queue_name = 'tag'"), {"next_at": None}),
        *(to("batch_queue", "run_after = '2098-01-01Z' where queue_name = 'copy'"), {"next_at": NEXT[2098]}),
        *(steer("copy", "paused_at = now()"), {"next_at": NEXT[2099]}),
    ],
    "the time left goes by the pace of ten minutes": [
        *(worker("copy"), batch("copy", 6000, "DONE")),
        to("batch_queue", "started_at = now() - interval '10 min', finished_at = now() - interval '5 min'"),
        batch("copy", 100),
        {"rate_1m": 0, "seconds_left": pytest.approx(10), "ends_at": ...},
        *(to("worker", "stopped_at = now()"), {"seconds_left": None}),
    ],
    "the pace does not count the time of a pause": [
        *COPYING,
        *(to("migration", "paused_at = now() - interval '8 min'"), to("migration", "paused_at = null")),
        to("event", "at = now() - interval '100 s' where kind = 'resumed'"),
        batch("copy", 1000, "DONE"),
        to("batch_queue", "started_at = now() - interval '9 min' where status = 'DONE'"),
        {"seconds_left": pytest.approx(10)},
    ],
    "no time left is told while a queue with work is paused": [
        *(TWO, worker("copy", "tag")),
        *(batch(queue, 100, status) for queue in ("copy", "tag") for status in ("DONE", "INIT")),
        {"seconds_left": ...},
        *(steer("tag", "paused_at = now()"), {"state": "running", "seconds_left": None}),
    ],
    "a migration is stalled when nothing has moved for five minutes": [
        *(batch("copy", 100, "DONE"), batch("copy", 100)),
        to("batch_queue", "run_after = now() - interval '2 h'"),
        *(worker("copy"), to("worker", "started_at = now() - interval '1 h'"), RUNNING),
        to("batch_tally", "finished_at = now() - interval '6 min'"),
        {"state": "stalled", "seconds_left": None},
        *(to("migration", "paused_at = now()"), PAUSED),
        *(to("migration", "paused_at = null"), RUNNING),  # it was resumed just now
    ],
    "a queue that moves keeps the migration from being stalled": [
        *(TWO, batch("copy", 100), batch("tag", 100), worker("copy", "tag")),
        to("batch_queue", "run_after = now() - interval '2 h'"),
        *(to("worker", "started_at = now() - interval '1 h'"), STALLED),
        *(batch("tag", 100, "DONE"), RUNNING),
    ],
    "a migration that runs or is done is held by nothing": [
        batch("copy", 100, "DONE"),
        to("batch_tally", "finished_at = now() - interval '1 h', started_at = now() - interval '2 h'"),
        *(why("done", "", ""), {"since": ago(hours=1)}),
        *COPYING,
        *(why("running", "", ""), {"since": ago(hours=2)}),  # since its first attempt began
    ],
    "a migration needs an operator since its last batch ended": [
        *(batch("copy", 12, "ERROR"), to("batch_tally", "finished_at = now() - interval '1 h'")),
        why("needs_operator", "errors", "All that is left has failed; see why: rowferry errors"),
        {"since": ago(hours=1)},
    ],
    "a pause says why, and whether a worker made it": [
        *(batch("copy", 1), run("select rowferry.set_pause(true, 'm', p_reason => 'Black Friday')")),
        why("paused", "person", "A person has paused it (Black Friday); then: rowferry resume"),
        {"since": ago(), "paused_at": ago()},
        RESUME,
        to("migration", "paused_at = now(), pause_reason = 'no rights', paused_by_worker = true"),
        why("paused", "worker", "A worker has paused it (no rights); then: rowferry resume"),
        to("migration", f"pause_reason = '{LONG_REASON}'"),
        why("paused", "worker", f"A worker has paused it ({LONG_REASON}); then: rowferry resume"),
        *(RESUME, run("select rowferry.set_pause(true, 'm', 'copy')")),
        why("paused", "queues", "All its queues with work are paused; see why: rowferry queues"),
        *(run("select rowferry.set_pause(false, 'm', 'copy')"), {"paused_at": None}),
    ],
    "without workers it is since the last one left, or work was due": [
        *(batch("copy", 100), to("batch_queue", "run_after = now() - interval '3 h'"), {"since": ago(hours=3)}),
        *(worker("copy", name="gone", silent="1 h"), worker("verify", name="other", silent="1 min")),
        why("no_workers", "no_workers", "No live worker serves its queues; start one: rowferry worker"),
        {"since": ago(hours=1)},
    ],
    # As for the workers that may take its batches over then: rowferry.begin_attempt.
    "a silent worker serves nothing": [
        *(batch("copy", 100), worker("copy", silent="9 s"), RUNNING),
        *(to("worker", "last_seen_at = now() - interval '10 s'"), NO_WORKERS),
    ],
    "workers that skip it say why": [
        *COPYING,
        to("worker", "unusable = (select jsonb_build_object(id || ' copy', 'No such bucket') from rowferry.migration)"),
        why(
            "no_workers",
            "skipped",
            "Workers skip it (No such bucket); fix that, and they continue; see which: rowferry status",
        ),
    ],
    "a wait says what for": [
        why("waiting", "no_batches", "It has no batch yet; add some: rowferry enqueue"),
        *COPYING,
        to(
            "batch_queue",
            "run_after = now() + interval '1 min', error = 'Timeout', started_at = now() - interval '9 s'",
        ),
        why("waiting", "retries", "No batch is due before its next attempt (Timeout); see when: rowferry watch"),
        {"since": ago(seconds=9)},
        to("batch_queue", "run_after = 'infinity'"),
        why("waiting", "deferred", "All its batches are deferred for ever; set their run_after"),
    ],
    "batches that are only put back wait for a server": [
        *COPYING,
        *(step for before in ("9 min", "5 min", "1 min") for step in (RUNNING, put_back(before))),
        why(
            "waiting",
            "server_away",
            "Batches are only put back (HTTP 503); workers go on by themselves; look at the server: rowferry check",
        ),
        {"since": ago(minutes=9)},
        *(to("batch_queue", "run_after = now() - interval '1 h'"), WAITING),  # and not stalled
        run("do $$ begin assert (select state = 'waiting' from rowferry.queue_status); end $$"),
        *(batch("copy", 100, "DONE"), {"cause": ""}),  # a batch has ended since
    ],
    # Fewer than three, or longer ago than the longest wait between two of them; batches that move, or at a stop.
    "batches that were put back long ago wait for nothing": [
        *(*COPYING, put_back("9 min"), put_back("8 min"), put_back("5 min"), RUNNING)
    ],
    "batches that were put back twice wait for nothing": [*COPYING, put_back("1 min"), put_back("1 min"), RUNNING],
    "batches that move wait for nothing": [
        *(*COPYING, *3 * [put_back("1 min", '{"migrated": 3, "kept": 0}', "the worker was told to stop")], RUNNING)
    ],
    "batches that were put back by a stop wait for nothing": [
        *(*COPYING, *3 * [put_back("1 min", "", "the worker was told to stop")], RUNNING)
    ],
    # One queue has no worker, the batches of the other wait for their next attempt.
    "work that is due for no worker is not called running": [
        *(batch("copy", 100), batch("tag", 100), worker("tag")),
        *(to("batch_queue", "run_after = now() + interval '1 h' where queue_name = 'tag'"), NO_WORKERS),
    ],
}

MOVES = {
    "a worker came": "update rowferry.worker set started_at = now()",
    "a batch became due": "update rowferry.batch_queue set run_after = now()",
    "entries were settled": "update rowferry.worker set "
    "in_hand = jsonb_build_object((select max(id) from rowferry.batch_attempt), 7), reported_at = now()",
    "a part was written": "insert into rowferry.upload (production, key, migration_id, batch_id, attempt_id) "
    "select 'p', 'k', q.migration_id, q.id, 1 from rowferry.batch_queue as q",
    "a first attempt": "update rowferry.batch_attempt set number = 1, started_at = now() - interval '29 min'",
}
"""What moves, or could not move earlier, is not stalled."""
STORIES |= {
    f"{words}, so it is not stalled": [
        *(*COPYING, to("batch_queue", "run_after = now() - interval '2 h'")),
        to("worker", "started_at = now() - interval '1 h'"),
        run(
            "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at) "
            "select q.id, 0, 2, 'host-a', now() - interval '50 min' from rowferry.batch_queue as q"
        ),
        *(STALLED, run(moves), RUNNING),
    ]
    for words, moves in MOVES.items()
}


def test_a_migration_is_as_its_story_says(lines: Lines, subtests: pytest.Subtests) -> None:
    """Each story in a transaction of its own, in which no time passes."""
    for name, steps in STORIES.items():
        with subtests.test(name), lines.session.transaction(force_rollback=True):
            for number, step in enumerate(steps):
                if isinstance(step, dict):
                    assert read(lines, step) == step, f"after {number} steps"
                else:
                    step(lines)


def read(lines: Lines, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that are asked for, with times as what is wanted of them has it."""
    query = f"select {', '.join(wanted)}, now() as now from rowferry.migration_state where migration = 'm'"
    (row,) = lines.session.execute(query.encode())
    found = {name: row[name] for name in wanted}
    for name, value in wanted.items():
        if value is ... and found[name] is not None:
            found[name] = ...
        elif isinstance(value, timedelta) and found[name] is not None:
            found[name] = row["now"] - found[name]
    return found


@pytest.mark.versions
def test_what_needs_a_person_first_is_the_most_urgent(lines: Lines) -> None:
    for name in ("errors", "unserved", "by_worker", "by_person", "waits", "runs", "over"):
        lines.register(name)
    for name, queue, status in (
        ("over", "copy", "DONE"),
        ("runs", "copy", "INIT"),
        ("by_person", "copy", "INIT"),
        ("by_worker", "copy", "INIT"),
        ("unserved", "tag", "INIT"),
        ("errors", "copy", "ERROR"),
    ):
        add(lines, queue, 1, status, migration=name)
    add_worker(lines, "copy")
    change(lines, "migration", "paused_at = now(), paused_by_worker = name = 'by_worker' where name like 'by%'")
    rows = lines.session.execute(
        "select urgency, array_agg(migration order by migration) as those from rowferry.migration_state "
        "where migration <> 'm' group by urgency order by urgency"
    ).fetchall()
    assert [(row["urgency"], row["those"]) for row in rows] == [
        (1, ["by_worker", "unserved"]),
        (2, ["errors"]),
        (3, ["by_person", "waits"]),
        (4, ["runs"]),
        (5, ["over"]),
    ]


def test_the_queue_that_holds_the_end_is_named(lines: Lines) -> None:
    lines.register("m", {"copy": {"next": ["tag"]}, "tag": {}})
    add_worker(lines, "copy", "tag")
    for queue, entries in (("copy", 1000), ("tag", 10)):
        add(lines, queue, entries, "DONE")
        add(lines, queue, 100)
    assert read(lines, {"held_by": None}) == {"held_by": "tag"}
    ended = lines.session.execute("select queue_name, is_slowest, time_left from rowferry.queue_status").fetchall()
    (held,) = [row for row in ended if row["is_slowest"]]
    assert held["time_left"] == max(row["time_left"] for row in ended)


def test_a_queue_that_workers_pass_over_waits_while_another_moves(lines: Lines) -> None:
    add(lines, "copy", 100)
    add(lines, "tag", 100)
    add_worker(lines, "copy", "tag")
    change(lines, "worker", "started_at = now() - interval '1 h'")
    change(lines, "batch_queue", "run_after = now() - interval '1 h'")
    states = "select queue_name, state from rowferry.queue_status"
    assert {row["state"] for row in lines.session.execute(states)} == {"stalled"}
    add(lines, "copy", 100, "DONE")
    moved = {row["queue_name"]: row["state"] for row in lines.session.execute(states)}
    assert moved == {"copy": "running", "tag": "waiting"}
    assert read(lines, RUNNING) == RUNNING
