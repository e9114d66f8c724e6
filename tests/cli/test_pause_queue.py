"""Promises of `rowferry pause --queue`, `rowferry resume --queue` and `rowferry requeue --queue`."""

from rowferry.db.connection import connect
from rowferry_cli.status.pause import pause, resume
from rowferry_worker.batch.claim import claim_batch
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.roles import grant, log_in, new_roles
from support.queue.held_batches import claim


def fill(table: EntryTable) -> None:
    """Two batches of `migrate` and one of `verify`."""
    table.add_legacy(range(3)).enqueue(1)
    table.execute(
        "update rowferry.batch_queue set queue_name = 'verify' where id = (select max(id) from rowferry.batch_queue)"
    )


def test_a_paused_queue_is_not_claimed_from_until_it_is_resumed(table: EntryTable) -> None:
    fill(table)
    with connect("operator", autocommit=True) as operator, connect("worker") as worker:
        (first,) = pause(operator, "avatars", "migrate")
        (second,) = pause(operator, "avatars", "migrate")
        assert (first["changed"], second["changed"]) == (True, False)
        assert first["paused_at"] == second["paused_at"] is not None
        assert (first["waiting"], first["open_batches"]) == (2, 2), "of this queue alone"
        assert claim(worker, "migrate", "verify").queue_name == "verify"
        assert claim_batch(worker, ["migrate"]) is None
        worker.rollback()
        (third,) = resume(operator, "avatars", "migrate")
        (fourth,) = resume(operator, "avatars", "migrate")
        assert (third["changed"], third["paused_at"], fourth["changed"]) == (True, first["paused_at"], False)
        assert claim_batch(worker, ["migrate"]) is not None


def test_a_queue_that_others_will_hand_on_to_can_be_paused_before_it_has_a_batch(table: EntryTable) -> None:
    fill(table)
    table.execute(
        "insert into rowferry.queue (migration_id, name, next) select id, 'migrate', '{tag}' from rowferry.migration"
    )
    with connect("operator", autocommit=True) as operator:
        (found,) = pause(operator, "avatars", "tag")
    assert (found["changed"], found["open_batches"]) == (True, 0)


PAUSE = """
insert into rowferry.queue as k (migration_id, name, paused_at) select id, 'migrate', now() from rowferry.migration
on conflict (migration_id, name) do update set paused_at = coalesce(k.paused_at, excluded.paused_at)
"""


def test_pausing_a_paused_queue_in_sql_records_no_event(table: EntryTable) -> None:
    fill(table)
    for _ in range(2):
        table.execute(PAUSE)
        assert [row["kind"] for row in table.execute("select kind from rowferry.event")] == ["paused"]
    table.execute("update rowferry.queue set paused_at = null")
    table.execute(PAUSE)
    kinds = [row["kind"] for row in table.execute("select kind from rowferry.event order by at")]
    assert kinds == ["paused", "resumed", "paused"]


def test_a_queue_of_all_migrations_is_paused_where_there_is_one(table: EntryTable) -> None:
    fill(table)
    table.plan["migration"]["name"] = "banners"
    table.enqueue(1)
    with connect("operator", autocommit=True) as operator:
        assert [status["migration"] for status in pause(operator, None, "migrate")] == ["avatars", "banners"]
        assert [status["migration"] for status in pause(operator, None, "verify")] == ["avatars"]
        assert [status["migration"] for status in pause(operator, None, "verify")] == ["avatars"], "again as well"
        assert [status["migration"] for status in resume(operator, None, "verify")] == ["avatars"]


def test_an_operators_grants_are_enough(migration: Migration) -> None:
    fill(migration)
    migration.write_plan()
    with new_roles(migration.dsn) as roles:
        grant(migration, roles)
        operator = {"DATABASE_URL": log_in(migration, roles["operator"])}
        assert migration.run("pause", "--queue", "migrate", **operator).stdout == (
            "Queue migrate of avatars is paused.\n"
            "  running batches, which will finish: 0\n"
            "  waiting batches: 2\n"
            "  to continue: rowferry resume --queue migrate --migration avatars\n"
        )
        assert migration.run("resume", "--queue", "migrate", **operator).stdout == (
            "Queue migrate of avatars is resumed: 2 batches open, 0 workers alive.\n"
            "  no worker is running: start `rowferry worker` on any host, or run `rowferry migrate`\n"
        )
        wrong = migration.run("pause", "--queue", "tag", **operator)
        assert (wrong.returncode, wrong.stderr) == (
            2,
            "rowferry: Migration avatars has no queue 'tag'; it has migrate, verify.\n",
        )
        migration.execute("update rowferry.batch_queue set status = 'ERROR', failed = 1")
        assert migration.run("requeue", "--all", "--queue", "verify", **operator).stdout == ("Requeued 1 batch.\n")
        assert [batch["status"] for batch in migration.batches()] == ["ERROR", "ERROR", "INIT"]
