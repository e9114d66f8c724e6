"""Roles that may log in, each with the grants of one purpose and nothing else."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

from psycopg import sql
from psycopg.conninfo import make_conninfo

from rowferry.db.connection import connect
from rowferry_cli.setup.grants import PURPOSES, Purpose, apply_grants, compose_grants
from support.entries.entry_table import EntryTable, trusted
from support.postgres.ordinary import OWNER, administrator

Roles = dict[Purpose, str]
PASSWORD = "not a secret"


@contextmanager
def new_role(dsn: str, options: str = "", *, password: str = PASSWORD) -> Iterator[str]:
    """Yield the name of a role that has been granted nothing; drop it afterwards.

    The owner of the database may take it (`set role`). `options` as `create role` takes them.
    """
    name = sql.Identifier(f"a {uuid4().hex}")
    make, drop = "create role {} login password {} {}; grant {} to {}", "drop owned by {0}; drop role {0}"
    with administrator(dsn) as connection:
        words = (name, sql.Literal(password), trusted(options), name, sql.Identifier(OWNER))
        connection.execute(sql.SQL(make).format(*words))
        try:
            yield name.as_string().strip('"')
        finally:
            connection.execute(sql.SQL(drop).format(name))


@contextmanager
def new_roles(dsn: str) -> Iterator[Roles]:
    """Yield one such role a purpose."""
    with ExitStack() as until:
        yield {purpose: until.enter_context(new_role(dsn)) for purpose in PURPOSES}


def grant(table: EntryTable, roles: Roles) -> None:
    """Grant each role what its purpose needs, for the plan of the table."""
    with connect("init", autocommit=True) as connection:
        for purpose, role in roles.items():
            apply_grants(connection, compose_grants(role, [purpose], table.read_plan()))


def log_in(table: EntryTable, role: str) -> str:
    """Return the DSN of the test's database for another role."""
    return make_conninfo(table.dsn, user=role, password=PASSWORD)
