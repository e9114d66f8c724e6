"""One row that the database refuses stays behind; the other ninety-nine follow their objects."""

import pytest

from support.entries.migration import Migration
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog


def test_a_check_constraint_stops_one_row_and_no_other(any_migration: Migration) -> None:
    any_migration.execute("alter table public.avatars add constraint no_57 check (path <> 'avatar/u57/me.png')")
    any_migration.given(100)
    assert any_migration.work() == {"migrated": 99, "failed": 1}
    assert any_migration.batch()["status"] == "ERROR"
    assert 'violates check constraint "no_57"' in any_migration.failure_of(57)[2]
    any_migration.audit(legacy_left=[57])


@pytest.mark.parametrize(
    ("reaction", "words"),
    [
        ("raise exception 'not with me'", "not with me"),
        ("return null", "the update left the row as it was"),
        ("new.path := lower(new.path) || '?'", "the row took another key than it was given"),
    ],
    ids=["raises", "skips", "rewrites"],
)
def test_rows_that_a_trigger_objects_to_are_left_out(reaction: str, words: str, migration: Migration) -> None:
    migration.add_trigger(f"if new.path like 'avatar/u_/%' then {reaction}; end if; return new;")
    migration.given(20)
    assert migration.work() == {"migrated": 11, "failed": 9}
    assert words in migration.failure_of(3)[2]
    migration.audit(legacy_left=range(1, 10))


DEFERRED = {
    "unique": "alter table public.avatars add constraint once unique (path) deferrable initially deferred",
    "foreign key": (
        "alter table public.avatars add constraint known foreign key (path) references public.known (path) "
        "deferrable initially deferred"
    ),
}


@pytest.mark.parametrize("kind", [*DEFERRED, "trigger"])
def test_a_deferred_constraint_stops_one_row_and_no_other(kind: str, migration: Migration) -> None:
    """At COMMIT it would be too late to leave one row out."""
    migration.execute(
        "create table public.known as select format('%s/u%s/me.png', form, n) as path "
        "from generate_series(1, 20) as n cross join (values ('image'), ('avatar')) as f (form)"
    )
    migration.execute("delete from public.known where path = 'avatar/u7/me.png'")
    migration.execute("alter table public.known add primary key (path)")
    migration.fill(20)
    if kind == "trigger":
        body = "if new.path = 'avatar/u7/me.png' then raise exception 'not with me'; end if; return new;"
        migration.add_trigger(body, "after update on public.avatars deferrable initially deferred", kind="constraint")
    else:
        migration.execute(DEFERRED[kind])
    if kind == "unique":
        migration.add_row(99, "avatar/u7/me.png")
    assert migration.migrate() == {"migrated": 19, "failed": 1}
    assert migration.failure_of(7)[0] == "failed"
    migration.audit(legacy_left=[7])


def test_a_key_too_long_for_its_column_is_left_out(migration: Migration) -> None:
    migration.execute("alter table public.avatars alter column path type varchar(20)")
    migration.fill(3)
    migration.add(4, "a" * 14)
    assert migration.migrate() == {"migrated": 3, "failed": 1}
    assert "value too long" in migration.failure_of(4)[2]
    migration.audit(legacy_left=[4])


def test_two_rows_with_one_id_that_both_fail_stop_no_worker(versitygw_migration: Migration) -> None:
    """As the children of a table with INHERITS may hold them."""
    migration = versitygw_migration.given(2, 2)
    migration.execute("alter table public.avatars drop constraint avatars_pkey")
    for name in ("one.png", "two.png"):
        migration.execute("insert into public.avatars values (1, %s)", (f"image/nowhere/{name}",))
    with migration.workers(1, "--until-empty") as (worker,):
        assert worker.wait() == 0
    (failure,) = migration.failures()
    assert failure["entry_id"] == "1"
    assert migration.statuses() == {"ERROR"}
    migration.check_balance()


def test_a_refused_verdict_takes_the_rows_back_and_is_told(versitygw_migration: Migration) -> None:
    migration = versitygw_migration.given(2, 1)
    refuse = "if new.status = 'DONE' and new.migrated > 0 then raise exception 'no such verdict'; end if; return new;"
    migration.add_trigger(refuse, "before update on rowferry.batch_queue")
    with migration.workers(1, "--until-empty") as (worker,):
        assert worker.wait() == 0
    assert [batch["status"] for batch in migration.batches()] == ["ERROR", "ERROR"]
    assert {batch["error"] for batch in migration.batches()} == {"its verdict could not be written: no such verdict"}
    migration.audit(legacy_left=[1, 2])


def test_a_ledger_that_is_emptied_in_mid_run_stops_no_worker(migration: Migration, log: RequestLog) -> None:
    migration.given(2, 1)
    with migration.workers(1, "--until-empty", "--max-batches=1") as (worker,):
        with log.holding(lambda seen: seen.writes_object) as held:
            eventually(lambda: held)
            migration.execute("delete from rowferry.batch_attempt")
        assert worker.wait() == 0
    assert [batch["status"] for batch in migration.batches()] == ["ERROR", "DONE"]
    assert "its verdict could not be written" in migration.batches()[0]["error"]
    migration.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    migration.work()
    migration.audit()
