"""What becomes of the schema outside of rowferry: restored without data, hidden by row security, made long ago."""

import pytest
from psycopg import sql

from rowferry.db.connection import connect
from rowferry.db.schema import initialise
from rowferry.errors import UsageError
from support.entries.migration import Migration
from support.postgres.ordinary import administrator
from support.postgres.roles import grant, log_in, new_role
from support.processes.cli import refused

pytestmark = pytest.mark.versions

COMMANDS = ("enqueue --yes", "worker --until-empty", "status --no-objects", "watch --once", "report", "errors")
TABLES = """
select relname as name from pg_class where relnamespace = 'rowferry'::regnamespace and relkind = 'r'
"""


def init() -> None:
    with connect("init", autocommit=True) as connection:
        initialise(connection)


def list_tables(migration: Migration) -> list[str]:
    return [row["name"] for row in migration.execute(TABLES)]


def empty(migration: Migration) -> None:
    """Leave what `pg_dump --schema-only` leaves."""
    names = ", ".join(f"rowferry.{name}" for name in list_tables(migration))
    migration.execute("alter table rowferry.batch_queue disable trigger user")  # they truncate the tally
    migration.execute(f"truncate {names}")
    migration.execute("alter table rowferry.batch_queue enable trigger user")


def test_a_schema_that_was_restored_without_data_is_named_and_made_anew(migration: Migration) -> None:
    migration.write_plan()
    empty(migration)
    for command in (*COMMANDS, "init"):
        said = refused(migration.run(*command.split()))
        assert "was restored without its data, or without rowferry.schema_migration alone" in said
    migration.execute("drop schema rowferry cascade")
    init()
    migration.given(10, 5)
    assert migration.work() == {"migrated": 10}


def test_a_key_of_claims_that_is_gone_is_named_and_made_anew(migration: Migration) -> None:
    """As after `pg_restore` without the data of one table."""
    migration.given(10, 5)
    migration.execute("delete from rowferry.claim_key")
    with migration.workers(1, "--until-empty") as (worker,):
        assert worker.wait() == 2
        assert "rowferry.claim_key is empty: run `rowferry init`" in worker.log
    init()
    with migration.workers(1, "--until-empty") as (worker,):
        assert worker.wait() == 0
    assert sum(migration.counts().values()) == 10
    migration.audit()


def test_a_role_that_row_security_hides_the_queue_from_is_told_so(migration: Migration) -> None:
    """An empty result is no absence: the owner sees all, and each other role nothing."""
    migration.write_plan().given(10, 5)
    with new_role(migration.dsn) as role:
        grant(migration, dict.fromkeys(("enqueuer", "worker", "operator"), role))
        dsn = log_in(migration, role)
        for name in list_tables(migration):  # as an event trigger or a security script does
            migration.execute(f"alter table rowferry.{name} enable row level security")
        for command in COMMANDS:
            assert "Row-level security hides rowferry." in refused(migration.run(*command.split(), DATABASE_URL=dsn))
        init()
        assert migration.run("queues", DATABASE_URL=dsn).returncode == 0
        with migration.workers(1, "--until-empty", DATABASE_URL=dsn) as (worker,):
            assert worker.wait() == 0
    assert migration.counts() == {"migrated": 10}


def test_an_event_trigger_that_enables_row_security_does_no_harm(migration: Migration) -> None:
    with administrator(migration.dsn) as connection:
        connection.execute(sql.SQL(LOCK_ALL))
    migration.execute("drop schema rowferry cascade")
    init()
    locked = "select from pg_class where relnamespace = 'rowferry'::regnamespace and relrowsecurity"
    assert migration.execute(locked) == []


LOCK_ALL = """
create function public.lock_all() returns event_trigger language plpgsql as $$
declare v record;
begin
    for v in select * from pg_event_trigger_ddl_commands() where object_type = 'table' loop
        execute format('alter table %s enable row level security', v.object_identity);
    end loop;
end $$;
create event trigger lock_all on ddl_command_end when tag in ('CREATE TABLE') execute function public.lock_all();
"""


@pytest.mark.parametrize(
    "change",
    [
        "drop function rowferry.heartbeat; create function rowferry.heartbeat(p_id text, p_host text, p_pid integer, "
        "p_version text, p_batches integer, p_in_flight_limit integer, p_queues text [], p_request_rates jsonb "
        "default '{}', p_process text default null, p_waits_for text default null) returns void language sql as ''",
        "alter table rowferry.worker drop column waits_for cascade; drop view if exists rowferry.live_workers cascade",
    ],
)
def test_a_schema_of_an_unreleased_version_is_called_that(change: str, migration: Migration) -> None:
    migration.execute(change)
    with pytest.raises(UsageError, match="was made by an unreleased version"):
        init()
