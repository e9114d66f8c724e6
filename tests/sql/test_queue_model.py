"""Several sessions do to a queue whatever workers, operators and crashes do; a model predicts every row of it."""

import os
import socket
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from rowferry.db.connection import call, connect
from support.entries.entry_table import EntryTable
from support.processes.processes import wait_for
from support.queue.queue_machine import QUEUES, WorkersMachine

pytestmark = pytest.mark.timeout(1200)
RUNS = int(os.environ.get("ROWFERRY_MODEL_RUNS", "12"))
"""Some 15 s on a quiet machine; fifty steps each, each held against the whole queue. `make model` asks for more."""

ROWS = """
select
    id, queue_name, status, attempts, requeues, crashes, max_attempts, entry_count, migrated, kept, changed, deleted,
    missing, conflict, failed, payload ? 'unsettled' as tracks,
    (select array_agg(u.id::int order by u.id::int) from jsonb_array_elements_text(
        case jsonb_typeof(payload -> 'unsettled') when 'array' then payload -> 'unsettled' end
    ) as u (id)) as unsettled_ids,
    jsonb_typeof(payload -> 'unsettled') = 'array' as is_tracked,
    (
        select array_agg(o.id::int order by o.id::int) from jsonb_array_elements_text(payload -> 'only') as o (id)
    ) as only,
    payload ? 'is_begun' as is_begun
from rowferry.batch_queue order by id
"""
LEDGER = "select id, batch_id, requeues, number, verdict from rowferry.batch_attempt order by id"
FAILURES = "select batch_id, entry_id::int, outcome from rowferry.entry_failure"
FREE = "select id from rowferry.batch_queue for update skip locked"
GONE = "select not exists (select from pg_stat_activity where pid = %s) as gone"


class QueueMachine(WorkersMachine):
    """Crashes and operators as well; after each step the whole queue is held against the model."""

    def holding(self) -> list[int]:
        return sorted(self.model.claims)

    # What happens to workers

    @precondition(lambda self: self.holding())
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        """The worker is told to stop."""
        number = data.draw(st.sampled_from(self.holding()))
        self.sessions[number].rollback()
        self._end(number, "RELEASED")

    @precondition(lambda self: self.holding())
    @rule(data=st.data())
    def lose_the_connection(self, data: st.DataObject) -> None:
        """The worker lives, its session does not: what it has written meanwhile can never be committed."""
        number = data.draw(st.sampled_from(self.holding()))
        session = self.sessions[number]
        self.table.execute("select pg_terminate_backend(%s, 10000)", (session.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            session.commit()
        self._reconnect(number)
        self._end(number, "LOST")

    @precondition(lambda self: self.holding())
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """The worker's process is killed: its socket is closed without a word."""
        self._die(data.draw(st.sampled_from(self.holding())))

    @precondition(lambda self: self.which(claimed=False))
    @rule(data=st.data(), deaths=st.integers(2, 3), queue=st.sampled_from(QUEUES))
    def kill_one_worker_after_the_other(self, data: st.DataObject, deaths: int, queue: str) -> None:
        """The batch that is due longest is a poisonous one."""
        number = self.pick(data, claimed=False)
        for _ in range(deaths):
            self._claim(number, queue)
            if number in self.model.claims:
                self._begin(number, data)
                self._die(number)

    def _die(self, number: int) -> None:
        session = self.sessions[number]
        with socket.socket(fileno=socket.dup(session.fileno())) as ours:
            ours.shutdown(socket.SHUT_RDWR)
        pid = session.info.backend_pid
        wait_for(lambda: self.table.execute(GONE, (pid,))[0]["gone"])
        self._reconnect(number)
        self.model.roll_back(number, None)

    def _end(self, number: int, verdict: str) -> None:
        """Tell the ledger why the claimed batch was not worked on."""
        attempt_id = self.model.claims[number].attempt_id
        if attempt_id is not None:
            self.ledger.call("end_attempt", attempt_id, verdict, "as the test wants it")
        self.model.roll_back(number, verdict)

    def _reconnect(self, number: int) -> None:
        self.sessions[number].close()
        self.sessions[number] = connect(f"worker {number}")

    @precondition(lambda self: any(a.verdict for a in self.model.ledger.values()))
    @rule(data=st.data(), verdict=st.sampled_from(["LOST", "RELEASED"]))
    def end_an_attempt_too_late(self, data: st.DataObject, verdict: str) -> None:
        """A word that arrives twice, or after the verdict, changes nothing."""
        ended = [attempt_id for attempt_id, attempt in self.model.ledger.items() if attempt.verdict]
        self.ledger.call("end_attempt", data.draw(st.sampled_from(ended)), verdict, "too late")

    # What operators do

    @precondition(lambda self: any(batch.status == "ERROR" for batch in self.model.batches.values()))
    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        """One that is in ERROR, or all of them."""
        failed = [batch.id for batch in self.model.batches.values() if batch.status == "ERROR"]
        one = data.draw(st.sampled_from([None, *failed]))
        (row,) = call(self.operator, "requeue", one, None)
        requeued = failed if one is None else [one]
        assert row["requeue"] == len(requeued)
        for batch_id in requeued:
            self.model.batches[batch_id].requeue()

    @precondition(lambda self: any(batch.status == "DONE" for batch in self.model.batches.values()))
    @rule(data=st.data())
    def do_again_by_hand(self, data: st.DataObject) -> None:
        done = [batch.id for batch in self.model.batches.values() if batch.status == "DONE"]
        batch_id = data.draw(st.sampled_from(done))
        self.table.execute("update rowferry.batch_queue set status = 'INIT' where id = %s", (batch_id,))
        self.model.batches[batch_id].requeue()

    @precondition(lambda self: self.model.paused or self.model.claims)
    @rule(paused=st.booleans())
    def pause_or_resume(self, paused: bool) -> None:
        """Claimed batches go on."""
        (row,) = call(self.operator, "set_pause", paused, "avatars")
        assert row["changed"] == (paused != self.model.paused)
        self.model.paused = paused

    @rule()
    def make_due(self) -> None:
        """An hour passes for unclaimed batches."""
        held = [claim.batch_id for claim in self.model.claims.values()]
        query = "update rowferry.batch_queue set run_after = now() where status = 'INIT' and id <> all(%s)"
        self.table.execute(query, (held,))

    @precondition(lambda self: any(batch.status == "DONE" for batch in self.model.batches.values()))
    @rule()
    def prune(self) -> None:
        (row,) = call(self.operator, "prune_batches", timedelta(0), 1000)
        assert row["prune_batches"] == self.model.prune()

    # What holds at every moment

    @invariant()
    def every_row_is_as_predicted(self) -> None:
        """Nothing uncommitted is seen, nothing committed is lost, and counts balance."""
        rows = self.table.execute(ROWS)
        for row in rows:
            ids, is_tracked = row.pop("unsettled_ids"), row.pop("is_tracked")
            row["unsettled"] = ids or [] if is_tracked else None
        assert rows == [self.model.batches[batch_id].row() for batch_id in sorted(self.model.batches)]
        failures = {(row["batch_id"], row["entry_id"], row["outcome"]) for row in self.table.execute(FAILURES)}
        assert failures == {failure for batch in self.model.batches.values() for failure in batch.failures()}

    @invariant()
    def no_attempt_is_lost(self) -> None:
        known = self.model.ledger
        expected = [(n, known[n].batch_id, known[n].requeues, known[n].number, known[n].verdict) for n in sorted(known)]
        assert [tuple(row.values()) for row in self.table.execute(LEDGER)] == expected

    @invariant()
    def just_what_is_in_a_hand_is_locked(self) -> None:
        free = {row["id"] for row in self.table.execute(FREE)}
        assert set(self.model.batches) - free == {claim.batch_id for claim in self.model.claims.values()}
        assert len({claim.batch_id for claim in self.model.claims.values()}) == len(self.model.claims)


def test_the_queue_does_what_the_model_predicts(table: EntryTable) -> None:
    table.add_legacy([0])
    table.enqueue()  # which stores the plan
    run_state_machine_as_test(
        cast("Any", lambda: QueueMachine(table)),
        settings=settings(
            max_examples=RUNS,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
        ),
    )
