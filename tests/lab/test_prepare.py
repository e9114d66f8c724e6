"""`prepare` makes an environment to try a migration in, the same for the same seed, and touches nothing real."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rowferry.db.connection import connect
from rowferry.errors import UsageError
from rowferry_lab.servers.fake_s3.store import make_object
from rowferry_lab.simulated.buckets import open_writers, ready_bucket
from rowferry_lab.simulated.prepare import Prepared, prepare
from support.entries.entry_table import trusted
from support.entries.key_forms import production_key
from support.entries.migration import Migration
from support.postgres.ordinary import OWNER, administrator
from support.processes.cli import refused, well
from support.s3.buckets import Buckets, fresh_buckets, remove_bucket
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes


def make_simulated(migration: Migration) -> Migration:
    migration.plan["migration"]["simulated"] = True
    return migration


@pytest.fixture
def simulated(migration: Migration) -> Migration:
    """A migration that may be thrown away."""
    return make_simulated(migration)


@pytest.fixture
def making_roles(simulated: Migration) -> Iterator[Migration]:
    """The same, whose owner may make roles; most may not."""
    for right in ("createrole", "nocreaterole"):
        with administrator(simulated.dsn) as connection:
            connection.execute(sql.SQL("alter role {} {}").format(sql.Identifier(OWNER), trusted(right)))
        if right == "createrole":
            yield simulated


def make(migration: Migration, number: int, **more: Any) -> Prepared:
    with connect("prepare", autocommit=True) as connection:
        return prepare(connection, migration.read_plan(), number, **more)


def check_verifier(migration: Migration) -> None:
    """The server has been told no password."""
    with administrator(migration.dsn) as connection:
        verifier = "select rolpassword from pg_authid where rolname = 'rowferry_avatars'"
        assert connection.execute(verifier).fetchall()[0][0].startswith("SCRAM-SHA-256$")


def keys(migration: Migration) -> list[str]:
    return [row["path"] for row in migration.execute("select path from public.avatars order by id")]


def test_rows_and_objects_match_on_every_server(buckets: Buckets, make_migration: Callable[..., Migration]) -> None:
    migration = make_simulated(make_migration(buckets, buckets))
    prepared = make(migration, 40, seed=7)
    rows, legacy, production = keys(migration), migration.legacy.listing(), migration.production.listing()
    assert len(rows) == 40
    assert {key for key in rows if key.startswith("image/")} == set(legacy)
    assert {key for key in rows if key.startswith("avatar/")} == set(production)
    assert prepared.images == {"legacy": len(legacy), "production": len(production)}
    assert min(len(legacy), len(production)) > 5


def test_pictures_are_those_of_a_web_application_and_no_legacy_key_becomes_one_that_is_there(
    simulated: Migration,
) -> None:
    make(simulated, 60, seed=1)
    entries, rows = simulated.read_plan().entries[0], keys(simulated)
    assert not {production_key(key, entries) for key in rows if key.startswith("image/")} & set(rows)
    heads = [simulated.legacy.head(key) for key in simulated.legacy.listing()]
    assert {head["ContentType"] for head in heads} == {"image/png"}
    assert {bool(head.get("CacheControl")) for head in heads} == {True, False}
    assert {bool(head["Metadata"]) for head in heads} == {True, False}
    assert any(simulated.legacy.tags(key) for key in simulated.legacy.listing())


def test_the_same_seed_makes_the_same_and_another_seed_something_else(simulated: Migration) -> None:
    def bodies(seed: int) -> dict[str, bytes | None]:
        make(simulated, 12, seed=seed, clean_production=True)
        sides = {side: getattr(simulated, side) for side in ("legacy", "production")}
        return {f"{name} {key}": side.read(key) for name, side in sides.items() for key in side.listing()}

    first = bodies(5)
    assert bodies(5) == first
    assert bodies(6) != first


def test_the_legacy_bucket_is_emptied_and_the_production_bucket_only_on_request(
    make_migration: Callable[..., Migration],
) -> None:
    """Of more objects than a page of a listing has."""
    left = set(map(str, range(1001)))
    with running_fakes(Deviations()) as (fake,), fresh_buckets(fake) as buckets:
        simulated = make_simulated(make_migration(buckets, buckets))
        for side in (simulated.legacy, simulated.production):
            fake.fake.store.buckets[side.bucket].objects |= {name: make_object(b"") for name in left}
        make(simulated, 1)
        assert left.isdisjoint(simulated.legacy.listing())
        assert left <= set(simulated.production.listing())
        make(simulated, 1, clean_production=True)
        assert left.isdisjoint(simulated.production.listing())


def test_buckets_that_are_not_there_are_made(simulated: Migration) -> None:
    names = [f"new-{side}-of-{simulated.legacy.bucket}"[:63] for side in ("legacy", "production")]
    simulated.plan["legacy"]["bucket"], simulated.plan["production"]["bucket"] = names
    try:
        make(simulated, 8, seed=2)
        client = simulated.legacy.client
        assert sum(len(client.list_objects_v2(Bucket=name).get("Contents", [])) for name in names) == 8
    finally:
        for name in names:
            remove_bucket(simulated.legacy.client, name)


def test_the_batches_of_the_rows_that_are_gone_are_forgotten(simulated: Migration) -> None:
    make(simulated, 10, seed=1)
    simulated.migrate(batch_size=3)
    simulated.execute("insert into rowferry.migration (name, plan) values ('another', '{}')")
    simulated.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
        "select id, 'migrate', '{}', 0 from rowferry.migration where name = 'another'"
    )
    make(simulated, 1)
    assert len(simulated.batches()) == 1
    assert simulated.attempts() == []


def test_every_key_column_of_every_table_gets_a_picture(simulated: Migration) -> None:
    first = simulated.plan["entries"][0]
    simulated.plan["entries"] += [
        {**first, "key": "thumb", "from": "thumb/", "to": "small/"},
        {**first, "table": "gallery.pieces", "id": "piece", "key": "name"},
    ]
    prepared = make(simulated, 5)
    assert sum(prepared.images.values()) == 3 * 2 + 2
    assert simulated.execute("select count(path) as n, count(thumb) as m from public.avatars") == [{"n": 3, "m": 3}]
    assert simulated.execute("select count(name) as n, count(title) as m from gallery.pieces") == [{"n": 2, "m": 2}]


def test_the_role_may_migrate_with_its_password(making_roles: Migration) -> None:
    prepared = make(making_roles, 6, role_password="it's 50%")
    assert prepared.role == "Role rowferry_avatars may migrate them and nothing else."
    dsn = make_conninfo(making_roles.dsn, user="rowferry_avatars", password="it's 50%")
    making_roles.write_plan()
    assert making_roles.run("enqueue", "--yes", DATABASE_URL=dsn).returncode == 0
    assert making_roles.run("worker", "--processes=1", "--until-empty", DATABASE_URL=dsn).returncode == 0
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("delete from public.avatars")
    check_verifier(making_roles)
    making_roles.execute("alter role rowferry_avatars nologin password null")


def test_before_init_the_role_gets_the_tables_only(making_roles: Migration) -> None:
    making_roles.execute("drop schema rowferry cascade")
    prepared = make(making_roles, 1)
    assert prepared.role.startswith("Role rowferry_avatars may read the rows and rewrite their keys, and nothing else.")
    query = "select has_column_privilege('rowferry_avatars', 'public.avatars', 'path', 'update') as may"
    assert making_roles.execute(query) == [{"may": True}]


def test_a_schema_of_another_version_is_refused_and_nothing_is_touched(simulated: Migration) -> None:
    simulated.fill(2)
    simulated.execute("delete from rowferry.schema_migration where number = 1")
    with pytest.raises(UsageError, match="restored without its data"):
        make(simulated, 1)
    assert (len(simulated.legacy.listing()), len(simulated.rows())) == (2, 2)


def test_no_way_into_the_code_that_deletes_leads_around_the_refusal(migration: Migration) -> None:
    migration.fill(1).write_plan()
    done = migration.run_here("prepare", "5", "--yes", "--clean-production")
    assert done.returncode == 2
    assert done.stderr.startswith("rowferry: The plan avatars is not simulated")
    plan = migration.read_plan()
    with pytest.raises(UsageError, match="not simulated"):
        make(migration, 1)
    with pytest.raises(UsageError, match="not simulated"):
        ready_bucket(plan, plan.legacy, empty=True)
    with pytest.raises(UsageError, match="not simulated"):
        open_writers(plan).__enter__()
    assert (len(migration.legacy.listing()), len(migration.rows())) == (1, 1)


def test_the_command_names_what_it_will_delete_takes_no_for_an_answer_and_says_what_it_made(
    simulated: Migration,
) -> None:
    simulated.fill(2).write_plan()
    done = simulated.run_here("prepare", "5", typed="n\n")
    assert done.returncode not in {0, 2}
    assert "public.avatars" in done.stdout
    assert simulated.legacy.bucket in done.stdout
    assert simulated.production.bucket not in done.stdout
    assert len(simulated.rows()) == 2
    made = simulated.run_here("prepare", "12", "--yes")
    assert (made.returncode, made.stderr) == (0, "")
    assert "Made 12 rows" in made.stdout


def test_impossible_numbers_are_one_sentence(simulated: Migration) -> None:
    simulated.write_plan()
    for arguments in (["0"], ["-5"], ["many"], []):
        refused(simulated.run_here("prepare", *arguments))


def test_a_server_that_refuses_the_pictures_leaves_the_table_as_it_was(
    simulated: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated.insert({"1": "image/1"})
    monkeypatch.setattr("rowferry_lab.simulated.prepare.ready_bucket", lambda *_, **__: None)
    simulated.plan["production"]["bucket"] = "there-is-none"
    with pytest.raises(UsageError, match="could not be written: NoSuchBucket"):
        make(simulated, 40)
    assert simulated.rows() == {"1": "image/1"}


# With --once


def prepare_once(migration: Migration, **environment: str) -> str:
    make_simulated(migration).write_plan()
    ended = well(migration.run_here("prepare", "20", "--once", "--yes", **environment))
    return ended.stdout


def test_what_is_there_is_left_alone_and_what_is_not_there_is_made(migration: Migration) -> None:
    migration.fill(3)
    assert "there already" in prepare_once(migration)
    assert len(migration.rows()) == 3
    assert migration.legacy.read("image/u1/me.png") == b"body of 1"
    migration.execute("drop table public.avatars")
    assert "Made 20 rows" in prepare_once(migration)
    assert len(migration.rows()) == 20


def test_the_roles_password_may_come_from_a_file(making_roles: Migration, tmp_path: Path) -> None:
    making_roles.execute("drop table public.avatars")
    secret = tmp_path / "role_password"
    secret.write_text("of the role\n")
    prepare_once(making_roles, ROWFERRY_ROLE_PASSWORD_FILE=str(secret))
    check_verifier(making_roles)
    with administrator(making_roles.dsn) as connection:
        connection.execute("drop owned by rowferry_avatars; drop role rowferry_avatars")
