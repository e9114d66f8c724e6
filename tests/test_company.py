"""A batch that has killed a worker is worked on alone, so that its next crash takes no other batch along."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from migration import Migration
from poison import work_in_spite_of_poison
from processes import wait_for
from rowferry_worker.state import Company


class Member:
    """Somebody at work, on a thread, until told to leave."""

    def __init__(self, company: Company, pool: ThreadPoolExecutor, *, alone: bool = False) -> None:
        self.leave, self.stop, self.joined = Event(), Event(), Event()
        self.ended: Future[bool] = pool.submit(self._join, company, alone)

    def _join(self, company: Company, alone: bool) -> bool:
        with company.joined(alone=alone, unless=self.stop) as joined:
            if joined:
                self.joined.set()
                assert self.leave.wait(100)
            return joined

    def depart(self) -> None:
        self.leave.set()
        assert self.ended.result(100)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def is_kept_waiting(member: Member) -> bool:
    return not member.joined.wait(0.3)


def test_many_work_side_by_side(pool: ThreadPoolExecutor) -> None:
    company = Company()
    members = [Member(company, pool) for _ in range(3)]
    assert all(member.joined.wait(100) for member in members)
    for member in members:
        member.depart()


def test_who_must_be_alone_waits_until_all_have_left_and_keeps_others_out(pool: ThreadPoolExecutor) -> None:
    company = Company()
    first = Member(company, pool)
    assert first.joined.wait(100)
    lonely = Member(company, pool, alone=True)
    wait_for(lambda: company._waiting_alone == 1)
    assert is_kept_waiting(lonely)
    late = Member(company, pool)
    assert is_kept_waiting(late), "else the lonely one would wait for ever"
    first.depart()
    assert lonely.joined.wait(100)
    assert is_kept_waiting(late)
    lonely.depart()
    assert late.joined.wait(100)
    late.depart()


def test_who_finds_itself_alone_may_stay_so(pool: ThreadPoolExecutor) -> None:
    company, never = Company(), Event()
    with company.joined(alone=False, unless=never):
        assert company.stay_alone()
        other = Member(company, pool)
        assert is_kept_waiting(other)
    assert other.joined.wait(100)
    with company.joined(alone=False, unless=never):
        assert not company.stay_alone()
    other.depart()


def test_nobody_waits_once_the_worker_stops(pool: ThreadPoolExecutor) -> None:
    company = Company()
    first = Member(company, pool)
    assert first.joined.wait(100)
    lonely = Member(company, pool, alone=True)
    lonely.stop.set()
    assert not lonely.ended.result(100)
    second = Member(company, pool)
    assert second.joined.wait(100), "who has given up keeps nobody out"
    for member in (first, second):
        member.depart()


def test_an_innocent_batch_in_the_same_process_is_not_taken_for_poison(
    versitygw_migration: Migration, tmp_path: Path
) -> None:
    """Each entry is a batch of its own, so none can be halved: two slots hold the poison and a neighbour at once."""
    migration = versitygw_migration
    migration.fill(8)
    migration.enqueue(batch_size=1)
    deaths = work_in_spite_of_poison(migration, tmp_path, slots=4).count(-9)
    (error,) = [batch for batch in migration.batches() if batch["status"] == "ERROR"]
    assert error["payload"]["first"] == "7"
    assert deaths == error["max_attempts"]
    migration.audit(legacy_left=[7])
