"""The tables of a simulated environment: dropped, created again, and filled by COPY."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from psycopg import Copy, sql

from rowferry.db.connection import Connection, fetch_one
from rowferry.db.description import split_table
from rowferry.errors import UsageError
from rowferry.plan import Entries, Plan
from rowferry_cli.setup.grants import PURPOSES, compose_grants, compose_table_grants
from rowferry_lab.queries import statement


class SimulatedTable:
    """One table of the plan, with every column that the plan names there."""

    def __init__(self, all_entries: Sequence[Entries]) -> None:
        """Take all [[entries]] over one table. Raises UsageError when they do not agree on its id column."""
        self.name = all_entries[0].table
        self.entries = tuple(all_entries)
        if not all(entries.is_plain for entries in all_entries):
            raise UsageError(f"Table {self.name} cannot be simulated: only [[entries]] of id, key, from and to can.")
        ids = {column for entries in all_entries for column in entries.ids}
        if len(ids) > 1 or ids & {entries.key for entries in all_entries}:
            raise UsageError(f"Table {self.name} cannot be simulated: its [[entries]] name different id columns.")
        self._id = ids.pop()
        taken = {self._id, *(entries.key for entries in all_entries)}
        self._title = next(name for name in ("name", "title", "rowferry_title") if name not in taken)
        self._parts = split_table(self.name)
        self._table = sql.Identifier(*self._parts)

    def recreate(self, connection: Connection) -> None:
        """Drop the table with all its rows, and create it again."""
        if len(self._parts) > 1:
            connection.execute(statement("create_schema_of_table", schema=sql.Identifier(self._parts[-2])))
        connection.execute(statement("drop_table", table=self._table))
        columns = {"id": sql.Identifier(self._id), "title": sql.Identifier(self._title)}
        connection.execute(statement("create_table", table=self._table, **columns))
        for entries in self.entries:
            connection.execute(statement("add_key_column", table=self._table, key=sql.Identifier(entries.key)))

    @contextmanager
    def fill(self, connection: Connection) -> Generator[Copy]:
        """Yield a COPY that takes rows of the title and one key for each of `entries`, in their order."""
        columns = [self._title, *(entries.key for entries in self.entries)]
        query = statement("copy_rows", table=self._table, columns=sql.SQL(", ").join(map(sql.Identifier, columns)))
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            yield copy

    def analyze(self, connection: Connection) -> None:
        """Update the planner's statistics."""
        connection.execute(statement("analyze_table", table=self._table))


def list_tables(plan: Plan) -> list[SimulatedTable]:
    """Return the tables of a plan, each once."""
    grouped: dict[tuple[str, ...], list[Entries]] = {}
    for entries in plan.entries:
        grouped.setdefault(split_table(entries.table), []).append(entries)
    return [SimulatedTable(all_entries) for all_entries in grouped.values()]


def are_there(connection: Connection, plan: Plan) -> bool:
    """Return whether every table of the plan exists."""
    names = [sql.Identifier(*split_table(entries.table)).as_string(connection) for entries in plan.entries]
    return bool(fetch_one(connection, statement("tables_are_there"), {"tables": names})["are_there"])


def share_rows(count: int, tables: Iterable[SimulatedTable]) -> list[tuple[SimulatedTable, int]]:
    """Return how many of `count` rows each table gets: as equal as can be, and all together exactly `count`."""
    listed = list(tables)
    each, more = divmod(count, len(listed))
    return [(table, each + (number < more)) for number, table in enumerate(listed)]


def make_role(connection: Connection, plan: Plan, password: str | None, *, has_schema: bool) -> str:
    """Make the role `rowferry_<migration>` if it can be made, and grant it the plan's tables and rowferry's functions.

    Return in a sentence what it may do now. Without a password it may not log in, but be taken by `set role`. The
    caller holds the transaction. `has_schema`: whether `rowferry init` was run, so that there are functions to grant.
    """
    name = f"rowferry_{plan.name}"[:63]
    role = sql.Identifier(name)
    found = fetch_one(connection, statement("look_up_role"), {"role": name})
    if not found["is_there"]:
        if not found["may_create"]:
            return f"Role {name} was not made: this role may not make others. See `rowferry init --grants`."
        connection.execute(statement("create_role", role=role))
    if password is not None:
        _set_password(connection, name, password)
    if has_schema:
        connection.execute(compose_grants(name, PURPOSES, plan))
        return f"Role {name} may migrate them and nothing else."
    connection.execute(sql.SQL("\n").join(compose_table_grants(name, PURPOSES, plan)))
    return (
        f"Role {name} may read the rows and rewrite their keys, and nothing else. Next: `rowferry init`, then "
        f"`rowferry init --grants {name} --apply`."
    )


def _set_password(connection: Connection, name: str, password: str) -> None:
    """Let the role log in; what goes to the server, and perhaps to its log, is a SCRAM verifier and no password."""
    verifier = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    query = statement("let_role_login", role=sql.Identifier(name), password=sql.Literal(verifier))
    connection.execute(query)
