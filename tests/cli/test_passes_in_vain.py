"""A pass that settles nothing is the last: the enqueuer sees rows that workers do not."""

import psycopg
import pytest

from rowferry.db.connection import connect
from rowferry_cli.migrate.vain import explain_vain_pass
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.ordinary import as_superuser

MIGRATE = ("migrate", "--yes", "--no-objects", "--processes", "1", "--log-file", "it.log")


@pytest.mark.timeout(90)
def test_passes_end_where_workers_see_none_of_the_entries(migration: Migration) -> None:
    migration.fill(6)
    migration.plan["entries"][0]["where"] = "current_setting('application_name') !~ 'worker'"
    migration.write_plan()
    done = migration.run_here(*MIGRATE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "found 6 entries" in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("Pass ")]) == 3
    assert "Traceback" not in done.stderr


LIVE = """
create function public.go_on() returns trigger language plpgsql as $$
begin
    if (select count(*) < 6 from rowferry.batch_queue) then
        {}
    end if;
    return null;
end $$;
create trigger go_on after {} for each statement execute function public.go_on();
"""
PASS = "insert on rowferry.batch_queue"
VERDICT = "update of status on rowferry.batch_queue"
INSERT = "insert into public.avatars select 100 + count(*), 'image/u1/me.png' from rowferry.batch_queue;"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("where", "when", "what", "status"),
    [
        ("true", PASS, "delete from public.avatars where path like 'image/%';" + INSERT, 0),
        ("true", VERDICT, "update public.avatars set path = 'image/u1/me.png' where id = 1;", 0),
        ("current_setting('application_name') !~ 'worker' or id > 6", PASS, INSERT, 1),
    ],
    ids=["it deletes what a pass has found", "it sets back what workers move", "beside rows that no worker sees"],
)
def test_an_application_goes_on_meanwhile(migration: Migration, where: str, when: str, what: str, status: int) -> None:
    """Until there are six batches: with each pass, or with each verdict of a worker."""
    migration.fill(6)
    migration.plan["entries"][0]["where"] = where
    migration.write_plan()
    migration.execute(LIVE.format(what, when))
    done = migration.run_here(*MIGRATE)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("The passes end" in done.stdout) == bool(status)
    assert len([line for line in done.stdout.splitlines() if line.startswith("Pass ")]) == (3 if status else 6)


@pytest.mark.superuser("only one may write to pg_collation")
def test_a_collation_of_another_version_is_named(table: EntryTable) -> None:
    """As after an upgrade of the system, which sorts texts otherwise than the index of the ids was made."""
    with connect("test", autocommit=True) as session:
        assert "reindex" in str(explain_vain_pass(session, table.read_plan(), 600))
        assert "collation version" not in str(explain_vain_pass(session, table.read_plan(), 600))
        table.execute("alter table public.avatars add name text collate pg_c_utf8")
        with psycopg.connect(as_superuser(table.dsn), autocommit=True) as superuser:
            superuser.execute("update pg_collation set collversion = '0' where collname = 'pg_c_utf8'")
        told = str(explain_vain_pass(session, table.read_plan(), 600))
    assert "found 600 entries" in told
    assert "collation pg_catalog.pg_c_utf8 was made by collation version 0, and this is" in told
