"""Ids of every type that PostgreSQL can sort, alone and beside another column, whatever the sessions have set."""

import psycopg
import pytest
from psycopg import sql

from rowferry.batch import Outcome
from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.db.timeouts import PGBOUNCER
from rowferry_worker.batch.row_update import RowChange, update_rows
from rowferry_worker.batch.sources.table import read_entries
from support.entries.entry_table import TO, EntryTable, trusted

ENQUEUER = (
    "-c datestyle=German,DMY -c timezone=Asia/Kolkata -c intervalstyle=sql_standard -c extra_float_digits=-10 "
    "-c bytea_output=escape"
)
WORKER = "-c datestyle=SQL,MDY -c timezone=America/New_York"
TYPES = """
create type mood as enum ('sad', 'o k', 'it''s');
create type pair as (a int, b text);
create domain small as int check (value < 100);
"""
IDS = {
    "smallint": "i - 20",
    "bigint": "9223372036854775807 - i * 113000000000000000",
    "numeric": "case i when 7 then 'NaN' when 8 then '-Infinity' else 1 + i / 3.0 end::numeric",
    "real": "case i when 7 then 'NaN' when 8 then '-Infinity' when 9 then 'Infinity' else 1 + i / 3e6 end::real",
    "float8": "case i when 7 then 'NaN' when 8 then '-Infinity' when 9 then 'Infinity' else 1 + i / 3e15 end",
    "money": "(i * 1000)::text::money",
    "uuid": "md5(i::text)::uuid",
    "text": "chr(i + 40) || '%% \\ \" {}' || i",
    'text collate "C"': "(array['a', 'B', 'ä', 'Z', 'é', '_', '[\"', ','])[1 + i %% 8] || i",
    "varchar(9)": "'ß' || i",
    "character(9)": "'a' || i",
    "name": "('a' || i)::name",
    '"char"': 'chr(i + 64)::"char"',
    "bytea": "decode(md5(i::text), 'hex')",
    "bit(12)": "i::bit(12)",
    "varbit": "i::bit(12)::varbit",
    "boolean": "i %% 2 = 0",
    "mood": "(array['sad', 'o k', 'it''s'])[1 + i %% 3]::mood",
    "small": "(i + 7)::small",
    "date": "case i when 7 then 'infinity' when 8 then '-infinity' else '2026-03-01'::date + i * 13 end::date",
    "time": "'10:00'::time + i * interval '7.1 seconds'",
    "timetz": "('10:00+0' || i %% 9)::timetz + i * interval '1 second'",
    "timestamp": "case i when 7 then 'infinity' else '2026-03-01 10:00'::timestamp + i * interval '25 hours' end",
    "timestamptz": "'2026-03-01 10:00+00'::timestamptz + i * interval '25 hours'",
    "interval": "i * interval '-1 day 3 hours 7.5 seconds'",
    "inet": "'10.0.0.0'::inet + i * 300",
    "cidr": "('10.0.0.0'::inet + i * 300)::cidr",
    "macaddr": "('08:00:2b:01:02:' || to_hex(i + 16))::macaddr",
    "oid": "(i + 2147483647::bigint)::oid",
    "pg_lsn": "('0/' || to_hex(i))::pg_lsn",
    "tid": "('(0,' || i || ')')::tid",
    "int4range": "int4range(i, i + 3)",
    "tstzrange": "tstzrange('2026-01-01 10:00+00', '2026-01-01 10:00+00'::timestamptz + i * interval '1 day')",
    "pair": "row(i %% 3, 'a,\"' || i)::pair",
    "jsonb": "jsonb_build_object('a', i)",
    "numeric(9,2)": "i / 7.0",
}
COLUMNS = {"alone": "id", "first of two": ["id", "number"], "last of three": ["even", "number", "id"]}
FILL = "insert into public.things select {}, i %% 2 = 0, i / 5, 'image/' || i from generate_series(1, 40) as i where {}"


PRINTED = ("date", "timestamp", "timestamptz", "float8", "real", "interval", "money")
"""Types whose text depends on the settings of a session: what an enqueuer writes, every worker must read."""


@pytest.mark.by_day("uuid", "bigint", "text", "numeric", "timestamptz", "bytea", "mood", "jsonb")
@pytest.mark.parametrize("id_type", IDS)
def test_each_row_is_read_and_moved_once(id_type: str, table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(table.dsn, autocommit=True) as connection:
        connection.execute(TYPES)
    for columns in COLUMNS.values():
        hold_rows(table, id_type, columns, monkeypatch)


@pytest.mark.parametrize("pooled", ["", "1"], ids=["", "as for pgbouncer"])
def test_ids_survive_other_settings_of_the_enqueuer(
    pooled: str, table: EntryTable, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setenv(PGBOUNCER, pooled)
    for id_type in PRINTED:
        with subtests.test(id_type):
            hold_rows(table, id_type, "id", monkeypatch, worker="")


def hold_rows(
    table: EntryTable, id_type: str, columns: str | list[str], patch: pytest.MonkeyPatch, worker: str = WORKER
) -> None:
    """Enqueue rows with such ids in one session, twice, and move each of them in another with other settings."""
    table.execute("drop table if exists public.things")
    table.execute("truncate rowferry.migration, rowferry.batch_queue, rowferry.entry_failure cascade")
    ids = [columns] if isinstance(columns, str) else columns
    make = "create table public.things (id {}, even boolean, number integer, path text, primary key ({}))"
    table.execute(trusted(make.format(id_type, ", ".join(ids))))
    table.plan["entries"][0] |= {"table": "public.things", "id": columns}
    for part in ("i %% 3 = 0", "i %% 3 <> 0"):
        fill = sql.SQL(FILL + " on conflict do nothing").format(trusted(IDS[id_type]), trusted(part))
        table.execute(fill, ())
        patch.setenv("PGOPTIONS", ENQUEUER)
        table.enqueue(7)
    (count,) = table.execute("select count(*) as rows from public.things")
    patch.setenv("PGOPTIONS", worker)
    assert move_all(table) == count["rows"] > 1
    assert table.execute("select from public.things where path not like 'avatar/%'") == []


def move_all(table: EntryTable) -> int:
    """Read each range and point its rows at their production keys, as a worker does; return how many it moved."""
    moved = 0
    with connect("worker test") as connection:
        queries = EntryQueries.of(connection, table.read_plan().entries[0])
        for batch in table.batches():
            first, last = batch["payload"]["first"], batch["payload"]["last"]
            entries = read_entries(connection, queries, first, last)
            assert len(entries) >= batch["entry_count"]  # more where rows came later
            moves = [RowChange(entry, (entry.key.replace("image/", TO),)) for entry in entries]
            moved += sum(done.outcome is Outcome.MIGRATED for done in update_rows(connection, queries, moves))
        connection.commit()
    return moved


def test_settings_that_triggers_may_rely_on_stay_as_they_are(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of days and months, and the time zone, in which a trigger writes a local time."""
    monkeypatch.setenv("PGOPTIONS", ENQUEUER)
    with connect("test") as connection:
        query = "select current_setting('datestyle') as datestyle, current_setting('timezone') as timezone"
        assert connection.execute(query).fetchone() == {"datestyle": "ISO, DMY", "timezone": "Asia/Kolkata"}
