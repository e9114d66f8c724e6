"""What a role may do in a database, as PostgreSQL's own catalogue answers for every object there is."""

from collections.abc import Iterator

import psycopg
from psycopg import sql

RELATIONS = """
select p.privilege || ' ' || c.oid::regclass
from pg_class as c
cross join unnest(%(table)s::text[]) as p (privilege)
where c.relkind in ('r', 'p', 'v', 'm', 'f') and has_table_privilege(%(role)s, c.oid, p.privilege)
"""
COLUMNS = """
select p.privilege || ' ' || c.oid::regclass || '(' || quote_ident(a.attname) || ')'
from pg_class as c
inner join pg_attribute as a on c.oid = a.attrelid and a.attnum > 0 and not a.attisdropped
cross join unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) as p (privilege)
where
    c.relkind in ('r', 'p', 'v', 'm', 'f')
    and not has_table_privilege(%(role)s, c.oid, p.privilege)
    and has_column_privilege(%(role)s, c.oid, a.attnum, p.privilege)
"""
SEQUENCES = """
select p.privilege || ' ' || c.oid::regclass
from pg_class as c
cross join unnest('{USAGE,SELECT,UPDATE}'::text[]) as p (privilege)
where c.relkind = 'S' and has_sequence_privilege(%(role)s, c.oid, p.privilege)
"""
FUNCTIONS = """
select 'EXECUTE ' || f.oid::regproc from pg_proc as f where has_function_privilege(%(role)s, f.oid, 'EXECUTE')
"""
SCHEMAS = """
select p.privilege || ' schema ' || n.nspname
from pg_namespace as n
cross join unnest('{CREATE,USAGE}'::text[]) as p (privilege)
where n.nspname !~ '^pg_t' and has_schema_privilege(%(role)s, n.oid, p.privilege)
"""
DATABASE = """
select p.privilege || ' this database'
from unnest('{CREATE,CONNECT,TEMPORARY}'::text[]) as p (privilege)
where has_database_privilege(%(role)s, current_database(), p.privilege)
"""
STANDING = """
select 'be ' || r.rolname from pg_roles as r
where r.rolname <> %(role)s and pg_has_role(%(role)s, r.oid, 'member')
union all
select a.name from pg_roles as r
cross join lateral (
    values
        ('SUPERUSER', r.rolsuper), ('CREATEROLE', r.rolcreaterole), ('CREATEDB', r.rolcreatedb),
        ('REPLICATION', r.rolreplication), ('BYPASSRLS', r.rolbypassrls)
) as a (name, held)
where r.rolname = %(role)s and a.held
union all
select 'own ' || pg_describe_object(d.classid, d.objid, 0)
from pg_shdepend as d
inner join pg_roles as r on d.refobjid = r.oid
where
    r.rolname = %(role)s and d.deptype = 'o'
    and d.dbid in (select 0 union all select b.oid from pg_database as b where b.datname = current_database())
"""
EVERYTHING = " union all ".join((RELATIONS, COLUMNS, SEQUENCES, FUNCTIONS, SCHEMAS, DATABASE, STANDING))

TABLE_PRIVILEGES = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
MAINTAIN_SINCE = 170_000


NO_PATH = "-c search_path="
"""Has every name outside PostgreSQL's own schema written in full."""


def list_privileges(dsn: str, role: str) -> list[str]:
    """Return all that a role may do in this database, sorted; a column only where its table as a whole is denied.

    PostgreSQL's own schemas are part of it. A function with two signatures is there twice.
    """
    with psycopg.connect(dsn, options=NO_PATH) as connection:
        newer = ["MAINTAIN"] if connection.info.server_version >= MAINTAIN_SINCE else []
        parameters = {"role": role, "table": TABLE_PRIVILEGES + newer}
        return sorted(name for (name,) in connection.execute(EVERYTHING.encode(), parameters))


TABLES = """
select c.oid::regclass::text, array_agg(quote_ident(a.attname) order by a.attnum)
from pg_class as c
inner join pg_attribute as a on c.oid = a.attrelid and a.attnum > 0 and not a.attisdropped
inner join pg_namespace as n on c.relnamespace = n.oid
where c.relkind in ('r', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
group by c.oid
order by 1
"""
CALLS = """
select
    f.oid::regproc::text,
    format(
        'select %s(%s)',
        f.oid::regproc,
        (select string_agg('null::' || format_type(t.type, null), ', ') from unnest(f.proargtypes) as t (type))
    )
from pg_proc as f
inner join pg_namespace as n on f.pronamespace = n.oid
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
order by 1
"""


def write_trials(dsn: str) -> Iterator[tuple[str, str]]:
    """Yield, for every table, column, sequence, function and schema outside PostgreSQL's own, what can be tried on it.

    Each trial is the privilege that it needs, in the words of `list_privileges`, and a statement that needs no other.
    """
    with psycopg.connect(dsn, options=NO_PATH) as connection:
        for table, columns in connection.execute(TABLES).fetchall():
            yield f"SELECT {table}", f"select * from {table}"
            yield f"DELETE {table}", f"delete from {table}"
            yield f"TRUNCATE {table}", f"truncate {table}"
            for column in columns:
                yield f"SELECT {table}({column})", f"select {column} from {table}"
                yield f"INSERT {table}({column})", f"insert into {table} ({column}) values (default)"
                yield f"UPDATE {table}({column})", f"update {table} set {column} = default"
        for (sequence,) in connection.execute("select oid::regclass::text from pg_class where relkind = 'S'"):
            yield f"USAGE {sequence}", sql.SQL("select nextval({})").format(sequence).as_string()
            yield f"UPDATE {sequence}", sql.SQL("select setval({}, 9)").format(sequence).as_string()
        for function, call in connection.execute(CALLS).fetchall():
            yield f"EXECUTE {function}", call
        for schema in ("rowferry", "public", "private"):
            yield f"CREATE schema {schema}", f"create table {schema}.mine ()"
        yield "CREATE this database", "create schema mine"


def may(privileges: set[str], wanted: str) -> bool:
    """Return whether a privilege is among these, for itself or with its whole table."""
    return wanted in privileges or wanted.partition("(")[0] in privileges
