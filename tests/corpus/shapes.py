"""Shapes of tables that users have met: how each is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FORTY = "insert into shapes (id, path) select i, 'image/' || i from generate_series(1, 40) as i"


@dataclass(frozen=True, slots=True)
class Shape:
    """A table `shapes` with an `id` and a `path`, unless `entries` says otherwise."""

    statements: tuple[str, ...]
    """What makes the table and its rows; each key below `image/` gets an object."""
    entries: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the [[entries]] say besides, or instead."""


SHAPES = {
    "shared objects": Shape(
        (
            "create table shapes (id bigint primary key, path text)",
            "insert into shapes select i, 'image/' || i % 7 from generate_series(1, 40) as i",
        )
    ),
    "triggers": Shape(
        (
            "create table shapes (id bigint primary key, path text, touched integer not null default 0)",
            "create table log (id bigint, old text, new text)",
            "create function note() returns trigger language plpgsql as $$ begin new.touched := old.touched + 1; "
            "insert into log values (new.id, old.path, new.path); return new; end $$",
            "create trigger note before update on shapes for each row execute function note()",
            FORTY,
        )
    ),
    "hash partitions": Shape(
        (
            "create table shapes (id bigint primary key, path text) partition by hash (id)",
            *(
                f"create table shapes_{n} partition of shapes for values with (modulus 3, remainder {n})"
                for n in range(3)
            ),
            FORTY,
        )
    ),
    "snowflake ids": Shape(
        (
            "create table shapes (id bigint primary key, path text)",
            "insert into shapes select 113000000000000000 + i * i * 65536, 'image/' || i "
            "from generate_series(1, 40) as i",
        )
    ),
    "ids in the order of ICU, where PostgreSQL has it": Shape(
        (
            "do $$ begin execute format('create table shapes (id text collate %I primary key, path text)', "
            "(select collname from pg_collation where collname in ('und-x-icu', 'en_US', 'C') "
            "order by collname desc limit 1)); end $$",
            "insert into shapes select w || n, 'image/' || w || n "
            "from unnest(array['a', 'B', 'ä', 'Z', 'é', '_', 'ß', 'Å']) as w, generate_series(1, 5) as n",
        )
    ),
    "ids of a date, in a database with another DateStyle": Shape(
        (
            "do $$ begin execute format('alter database %I set datestyle = ''German, DMY''', current_database()); "
            "end $$",
            "create table shapes (id date primary key, path text)",
            "insert into shapes select '2026-01-01'::date + i, 'image/' || i from generate_series(1, 40) as i",
        )
    ),
    "blank and null names, and a new prefix": Shape(
        (
            "create table shapes (id bigint primary key, path text)",
            FORTY,
            "update shapes set path = case when id % 2 = 0 then '' end where id % 5 = 0",
        ),
        {"from": "", "to": "avatar/"},
    ),
    "a view's table": Shape(
        (
            "create table shapes (id bigint primary key, path text)",
            "create view seen as select * from shapes",
            "create materialized view kept as select id from shapes",
            FORTY,
        )
    ),
    "partitions by date, the id unique over all": Shape(
        (
            "create table shapes (id bigint, path text, day date, primary key (id, day)) partition by range (day)",
            "create table shapes_1 partition of shapes for values from ('2026-01-01') to ('2026-02-01')",
            "create table shapes_2 partition of shapes for values from ('2026-02-01') to ('2026-03-01')",
            "insert into shapes select i, 'image/' || i, '2026-01-07'::date + i from generate_series(1, 40) as i",
        )
    ),
    "a child's rows beside those of its parent": Shape(
        (
            "create table shapes (id bigint primary key, path text)",
            "create table child () inherits (shapes)",
            FORTY,
            "insert into child values (1, 'other/of the child')",
        ),
        {"where": "tableoid = 'public.shapes'::regclass"},
    ),
}
