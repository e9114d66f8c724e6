"""What workers do to a queue, each step at the test's command, and a model beside it that says what must come of it."""

from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import timedelta
from itertools import count

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rowferry.batch import Attempt, Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.crash_policy import choose_policy
from rowferry_worker.batch.process import bisect_batch, split_remaining
from rowferry_worker.batch.verdict import judge, write_failure, write_verdict
from rowferry_worker.ledger import Ledger
from support.entries.entry_table import EntryTable
from support.queue.queue_model import SETTLED, UNSETTLED, ModelAttempt, ModelBatch, ModelClaim, QueueModel

SESSIONS = 3
MOST_BATCHES = 8
WAITS = st.sampled_from([timedelta(0), timedelta(hours=1)])
EMPTY = "truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure restart identity"
INSERT = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
select
    id, 'migrate',
    jsonb_build_object('entries', 'public.avatars.path', 'first', %s::text, 'last', %s::text) || %s::jsonb, %s, %s
from rowferry.migration returning id
"""
QUEUES = ("migrate", "after")
"""What the first settles, the second is given."""
STEER = """
insert into rowferry.queue (migration_id, name, max_claimed, next, payload, planned)
select m.id, q.name, q.max_claimed, q.next, q.payload, '{}'
from rowferry.migration as m, (values ('migrate', %s::int, '{after}'::text[], '{}'::jsonb), ('after', null, '{}', %s))
as q (name, max_claimed, next, payload)
on conflict (migration_id, name) do update set max_claimed = excluded.max_claimed, payload = excluded.payload,
    planned = excluded.planned
"""
TRACKS = '{"unsettled": null}'
VISIBLE = "select id, queue_name from rowferry.batch_queue"
DUE = "select id, run_after from rowferry.batch_queue where status = 'INIT' and run_after <= clock_timestamp()"


class WorkersMachine(RuleBasedStateMachine):
    """Three sessions that claim, begin, perform and commit; `model` is told of each step and predicts its answer."""

    def __init__(self, table: EntryTable) -> None:
        super().__init__()
        self.table, self.model, self.entries = table, QueueModel(), 0
        table.execute(EMPTY)
        table.execute("update rowferry.migration set paused_at = null")
        self.incarnations = count(1)
        self.until = ExitStack()
        self.ledger = self.until.enter_context(closing(Ledger("model")))
        self.sessions = [connect(f"worker {number}") for number in range(SESSIONS)]
        self.operator = self.until.enter_context(closing(connect("operator", autocommit=True)))
        self.after_tracks = False
        self._split_now: list[ModelBatch] = []
        """What the attempt at hand has split its batch into."""
        self.claims: dict[int, tuple[Batch, Attempt | None]] = {}
        """What the real claim and the real ledger said, by session."""

    def teardown(self) -> None:
        for session in self.sessions:
            session.close()
        self.until.close()

    def pick(self, data: st.DataObject, *, claimed: bool, started: bool = False, written: bool = False) -> int:
        """Draw a session in a state."""
        return data.draw(st.sampled_from(self.which(claimed=claimed, started=started, written=written)))

    def which(self, *, claimed: bool, started: bool = False, written: bool = False) -> list[int]:
        def fits(claim: ModelClaim | None) -> bool:
            found = (claim is not None, bool(claim and claim.attempt_id), bool(claim and claim.verdict))
            return found == (claimed, started, written)

        return [number for number in range(SESSIONS) if fits(self.model.claims.get(number))]

    @initialize(
        batches=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.booleans()), min_size=1, max_size=4),
        max_claimed=st.sampled_from([None, None, 1, 2]),
        after_tracks=st.booleans(),
    )
    def begin_with(self, batches: list[tuple[int, int, bool]], max_claimed: int | None, after_tracks: bool) -> None:
        self.model.max_claimed, self.after_tracks = max_claimed, after_tracks
        self.table.execute(STEER, (max_claimed, TRACKS if after_tracks else "{}"))
        for size, max_attempts, tracks in batches:
            self.enqueue(size, max_attempts, tracks)

    @precondition(lambda self: sum(batch.queue == "migrate" for batch in self.model.batches.values()) < MOST_BATCHES)
    @rule(size=st.integers(1, 4), max_attempts=st.integers(1, 3), tracks=st.booleans())
    def enqueue(self, size: int, max_attempts: int, tracks: bool) -> None:
        first, self.entries = self.entries + 1, self.entries + size
        choices = TRACKS if tracks else "{}"
        (row,) = self.table.execute(INSERT, (first, self.entries, choices, size, max_attempts))
        new = ModelBatch(row["id"], dict.fromkeys(range(first, first + size)), max_attempts, tracks=tracks)
        self.model.batches[new.id] = new

    @precondition(lambda self: self.which(claimed=False))
    @rule(data=st.data(), steps=st.sampled_from([1, 2, 2, 3, 4]), queue=st.sampled_from(QUEUES))
    def work(self, data: st.DataObject, steps: int, queue: str) -> None:
        """Go so many steps with a batch at once: claim, begin, perform, commit."""
        number = self.pick(data, claimed=False)
        self._claim(number, queue)
        for step in (self._begin, self._perform, self._commit)[: steps - 1]:
            if number in self.model.claims:
                step(number, data)

    @precondition(lambda self: self.which(claimed=False) and not self.model.paused)
    @rule(data=st.data())
    def work_on_all(self, data: st.DataObject) -> None:
        """Finish whatever is due, as an undisturbed worker does."""
        number = self.pick(data, claimed=False)
        for queue in QUEUES:
            for _ in range(MOST_BATCHES):
                self._claim(number, queue)
                if number not in self.model.claims:
                    break
                for step in (self._begin, self._perform, self._commit):
                    step(number, data)

    def _claim(self, number: int, queue: str) -> None:
        expected = self.model.claimable(queue, {row["id"]: row["run_after"] for row in self.table.execute(DUE)})
        batch = claim_batch(self.sessions[number], [queue])
        assert (batch and batch.id) == expected
        if batch is None:
            self.sessions[number].rollback()
        else:
            self.model.claims[number], self.claims[number] = ModelClaim(batch.id), (batch, None)

    @precondition(lambda self: self.which(claimed=True))
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self._begin(self.pick(data, claimed=True), data)

    def _begin(self, number: int, _: st.DataObject) -> None:
        claim, (batch, _attempt) = self.model.claims[number], self.claims[number]
        expected = self.model.begin(claim)
        attempt = begin_attempt(self.ledger, batch, f"worker {next(self.incarnations)}")
        assert (attempt.number, attempt.crashes, attempt.losses) == expected
        claim.attempt_id, (claim.number, claim.crashes, claim.losses) = attempt.id, expected
        self.model.ledger[attempt.id] = ModelAttempt(batch.id, batch.requeues, attempt.number)
        self.claims[number] = (batch, attempt)

    @precondition(lambda self: self.which(claimed=True, started=True))
    @rule(data=st.data())
    def perform(self, data: st.DataObject) -> None:
        self._perform(self.pick(data, claimed=True, started=True), data)

    def _perform(self, number: int, data: st.DataObject) -> None:
        """Do what the treatment says, up to the COMMIT."""
        self._split_now = []
        claim, (batch, attempt) = self.model.claims[number], self.claims[number]
        assert attempt is not None
        assert choose_policy(batch, attempt).name == self.model.policy(claim)
        event(f"policy: {self.model.policy(claim)}")
        act = {"BISECT": self._halve, "FAIL": self._give_up}.get(self.model.policy(claim), self._run)
        act(data, self.sessions[number], claim, batch, attempt)

    def _run(self, data: st.DataObject, session: Connection, claim: ModelClaim, batch: Batch, attempt: Attempt) -> None:
        """Give each entry an outcome; now and then the time is over before the last of them."""
        assert attempt.number <= batch.max_attempts, "nothing is tried for ever"
        known = self.model.batches[batch.id]
        changed_back = [entry for entry in known.changed() if data.draw(st.booleans())]
        read = sorted([*known.to_read(), *changed_back])
        cut = data.draw(st.integers(0, len(read))) if read and not changed_back else len(read)
        if not cut and len(read) > 1:
            self._run_past_the_first(data, session, claim, batch, attempt)
            return
        started, rest = read[: cut or 1], read[cut or 1 :]
        outcomes = {entry: data.draw(st.sampled_from(SETTLED + UNSETTLED)) for entry in started}
        passing = data.draw(st.sampled_from(["never", "soon", "outage"]))
        results = [result_of(entry, outcome, passing) for entry, outcome in outcomes.items()]
        judged, wait = judge(results, attempt.number, batch.max_attempts), data.draw(WAITS)
        unsettled = any(outcome in UNSETTLED for outcome in outcomes.values())
        again = "RELEASED" if passing == "outage" else "RETRY" if claim.number < batch.max_attempts else "ERROR"
        verdict = "DONE" if not unsettled else "ERROR" if passing == "never" else again
        assert judged.verdict == verdict
        split = self._split(session, batch, started[-1], rest) if rest else []
        write_verdict(session, batch, attempt, Judgement(judged.verdict, wait, judged.error), results)
        handed_on = self._find_handed_on(session, batch, verdict, outcomes)
        self.model.write(claim, verdict, *split, *handed_on).finish(verdict, claim.number, outcomes, rest)

    def _run_past_the_first(
        self, data: st.DataObject, session: Connection, claim: ModelClaim, batch: Batch, attempt: Attempt
    ) -> None:
        """The time is over in the middle of the first entry's object; rows of others behind it were updated."""
        first, *behind = sorted(self.model.batches[batch.id].to_read())
        moved = [behind[-1], *(entry for entry in behind[:-1] if data.draw(st.booleans()))]
        rest = [entry for entry in behind if entry not in moved]
        outcomes = {**dict.fromkeys(moved, "migrated"), first: "failed"}
        results = [result_of(entry, outcome, "outage") for entry, outcome in outcomes.items()]
        split = self._split(session, batch, first, rest) if rest else []
        write_verdict(session, batch, attempt, Judgement(Verdict.RELEASED, timedelta(0), "goes on"), results)
        handed_on = self._find_handed_on(session, batch, "RELEASED", outcomes)
        self.model.write(claim, "RELEASED", *split, *handed_on).finish("RELEASED", claim.number, outcomes, rest)

    def _find_handed_on(
        self, session: Connection, batch: Batch, verdict: str, outcomes: Mapping[int, str]
    ) -> list[ModelBatch]:
        """Return the batch of the next queue that the verdict has made, as the model predicts it."""
        known = self.model.batches[batch.id]
        settled, only = known.hand_on(verdict, outcomes, is_cut=bool(self._split_now))
        is_predicted = bool(settled) and known.queue == "migrate"
        mine = {split.id for split in self._split_now}
        visible = session.execute(VISIBLE).fetchall()
        new = [row["id"] for row in visible if row["id"] not in self.model.batches and row["id"] not in mine]
        assert len(new) == is_predicted, "a batch was handed on, or was not, against the prediction"
        event(f"handed on: {'nothing' if not new else 'all' if only is None else 'some'}")
        entries = dict.fromkeys(sorted(settled))
        return [
            ModelBatch(id_, entries.copy(), known.max_attempts, queue="after", tracks=self.after_tracks, only=only)
            for id_ in new
        ]

    def _split(self, session: Connection, batch: Batch, last: int, rest: list[int]) -> list[ModelBatch]:
        """Put entries back that the time did not suffice for; the batch's range ends with `last`."""
        left = [Entry(str(entry), "image/x") for entry in [last, *rest]]
        new_id = split_remaining(session, batch, left)
        self._split_now = [self.model.batches[batch.id].split(new_id, rest, batch.crashes)]
        return self._split_now

    def _halve(self, _: st.DataObject, session: Connection, claim: ModelClaim, batch: Batch, attempt: Attempt) -> None:
        known = self.model.batches[batch.id]
        read = sorted(known.to_read())
        crashes, halves, middle = self.model.strikes(claim), [], (len(read) + 1) // 2
        if len(read) == 1 and crashes >= batch.max_attempts:
            self._give_up(_, session, claim, batch, attempt)
            return
        if len(read) > 1:
            entries = [Entry(str(entry), "image/x") for entry in read]
            ids = bisect_batch(session, batch, entries, crashes)
            parts = zip(ids, (read[:middle], read[middle:]), strict=True)
            halves = [known.split(new, part, crashes) for new, part in parts]
        outcomes = {} if halves else dict.fromkeys(read, "migrated")
        results = [result_of(entry, outcome) for entry, outcome in outcomes.items()]
        write_verdict(session, batch, attempt, Judgement(Verdict.DONE), results)
        self._split_now = halves
        handed_on = self._find_handed_on(session, batch, "DONE", outcomes)
        self.model.write(claim, "DONE", *halves, *handed_on).finish(
            "DONE", claim.number, outcomes, read if halves else ()
        )

    def _give_up(
        self, _: st.DataObject, session: Connection, claim: ModelClaim, batch: Batch, attempt: Attempt
    ) -> None:
        write_failure(session, batch, attempt, Judgement(Verdict.ERROR, error="not run again"))
        self.model.write(claim, "ERROR").fail("ERROR", claim.number)

    @precondition(lambda self: self.which(claimed=True, started=True))
    @rule(data=st.data(), verdict=st.sampled_from([Verdict.ERROR, Verdict.RETRY, Verdict.RELEASED]), wait=WAITS)
    def fail_as_a_whole(self, data: st.DataObject, verdict: Verdict, wait: timedelta) -> None:
        number = self.pick(data, claimed=True, started=True)
        claim, (batch, attempt) = self.model.claims[number], self.claims[number]
        assert attempt is not None
        write_failure(self.sessions[number], batch, attempt, Judgement(verdict, wait, "failed as a whole"))
        self.model.write(claim, verdict).fail(verdict, claim.number)

    @precondition(lambda self: self.which(claimed=True, started=True, written=True))
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        self._commit(self.pick(data, claimed=True, started=True, written=True), data)

    def _commit(self, number: int, _: st.DataObject) -> None:
        self.sessions[number].commit()
        self.model.commit(number)


def result_of(entry: int, outcome: str, passing: str = "never") -> EntryResult:
    """Return the outcome of an entry, whose failure is `passing` "soon", "never", or with an "outage"."""
    known, retryable, costs = Entry(str(entry), f"image/{entry}"), passing != "never", passing != "outage"
    return EntryResult(known, Outcome(outcome), 10, "why", "because", retryable, costs)
