"""A verdict that the database refuses is the batch's ERROR; it stops no worker, and rows go back with it."""

from support.entries.migration import Migration
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog

REFUSE_VERDICTS = """
create function public.refuse() returns trigger language plpgsql as $$
begin
    if new.status = 'DONE' and new.migrated > 0 then raise exception 'no such verdict'; end if;
    return new;
end
$$;
create trigger refuse before update on rowferry.batch_queue for each row execute function public.refuse()
"""


def test_two_rows_with_one_id_that_both_fail_stop_no_worker(versitygw_migration: Migration) -> None:
    """As the children of a table with INHERITS may hold them."""
    migration = versitygw_migration
    migration.given(2, 2)
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
    migration = versitygw_migration
    migration.given(2, 1)
    migration.execute(REFUSE_VERDICTS)
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
