"""The role of a simulated migration: it may do what a migration needs and nothing else."""

from dataclasses import dataclass

from psycopg import sql

from rowferry.database import Connection, fetch_one
from rowferry.grants import PURPOSES, compose_grants, compose_table_grants
from rowferry.plan import Plan
from rowferry.statements import statement


@dataclass(frozen=True, slots=True)
class MigrationRole:
    """What became of the role."""

    name: str
    is_there: bool
    """False when it was not there and the present role may not make roles."""
    has_own_grants: bool
    """Whether it was granted rowferry's own functions too; False before `rowferry init`."""


def make_role(connection: Connection, plan: Plan, password: str | None) -> MigrationRole:
    """Make the role `rowferry_<migration>` if it can be made, and grant it the plan's tables and rowferry's functions.

    Without a password it may not log in, but be taken by `set role`. The caller holds the transaction.
    """
    name = f"rowferry_{plan.name}"[:63]
    role = sql.Identifier(name)
    found = fetch_one(connection, statement("look_up_role"), {"role": name})
    has_schema = bool(fetch_one(connection, statement("has_schema"))["has_schema"])
    if not found["is_there"]:
        if not found["may_create"]:
            return MigrationRole(name, is_there=False, has_own_grants=False)
        connection.execute(statement("create_role", role=role))
    if password is not None:
        _set_password(connection, name, password)
    if has_schema:
        connection.execute(compose_grants(name, PURPOSES, plan))
    else:
        connection.execute(sql.SQL("\n").join(compose_table_grants(name, PURPOSES, plan)))
    return MigrationRole(name, is_there=True, has_own_grants=has_schema)


def _set_password(connection: Connection, name: str, password: str) -> None:
    """Let the role log in; what goes to the server, and perhaps to its log, is a SCRAM verifier and no password."""
    verifier = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    query = statement("let_role_login", role=sql.Identifier(name), password=sql.Literal(verifier))
    connection.execute(query)
