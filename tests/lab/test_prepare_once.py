from pathlib import Path

from psycopg import sql

from support.entries.migration import Migration
from support.postgres.ordinary import OWNER, administrator


def prepare_once(migration: Migration, **environment: str) -> str:
    migration.plan["migration"]["simulated"] = True
    migration.write_plan()
    ended = migration.run_here("prepare", "20", "--once", "--yes", **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_what_is_there_is_left_alone(migration: Migration) -> None:
    migration.fill(3)
    assert "there already" in prepare_once(migration)
    assert len(migration.rows()) == 3
    assert migration.legacy.read("image/u1/me.png") == b"body of 1"


def test_what_is_not_there_is_made(migration: Migration) -> None:
    migration.execute("drop table public.avatars")
    assert "Made 20 rows" in prepare_once(migration)
    assert len(migration.rows()) == 20


def test_the_roles_password_may_come_from_a_file(migration: Migration, tmp_path: Path) -> None:
    migration.execute("drop table public.avatars")
    with administrator(migration.dsn) as connection:
        connection.execute(sql.SQL("alter role {} createrole").format(sql.Identifier(OWNER)))
    secret = tmp_path / "role_password"
    secret.write_text("of the role\n")
    prepare_once(migration, ROWFERRY_ROLE_PASSWORD_FILE=str(secret))
    with administrator(migration.dsn) as connection:
        connection.execute(sql.SQL("alter role {} nocreaterole").format(sql.Identifier(OWNER)))
    with administrator(migration.dsn) as connection:
        verifier = "select rolpassword from pg_authid where rolname = 'rowferry_avatars'"
        assert connection.execute(verifier).fetchall()[0][0].startswith("SCRAM-SHA-256$")
        connection.execute("drop owned by rowferry_avatars; drop role rowferry_avatars")
