"""A database and a legacy bucket to discover, and what `rowferry plan --discover` makes of them."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rowferry.plan_file import parse_plan
from support.processes.cli import Done, run_in_this_process, well
from support.queue.workers_here import working_here
from support.s3.buckets import Buckets
from support.s3.objects import legacy_side, production_side

Plan = dict[str, Any]

on_moto = pytest.mark.parametrize("found", ["moto"], indirect=True)
"""Marks a test whose buckets are those of moto: S3 over HTTP as others have written it."""


class Discovering:
    """Tables and objects, as an application might have them."""

    def __init__(self, dsn: str, buckets: Buckets, folder: Path) -> None:
        self.dsn, self.folder = dsn, folder
        self.legacy, self.production = legacy_side(buckets), production_side(buckets)
        self._server = buckets.server

    @property
    def plan_path(self) -> Path:
        return self.folder / "rowferry.toml"

    def execute(self, query: str, parameters: Mapping[str, Any] | None = None) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("set search_path = public")  # the tests' role has the name of our own schema
            connection.execute(query.encode(), parameters)

    def read_texts(self, query: str) -> list[str]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("set search_path = public")
            return [text for (text,) in connection.execute(query.encode())]

    def insert(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for row in rows:
                values = ", ".join(["%s"] * len(row))
                connection.execute(f"insert into public.{table} values ({values})".encode(), row)

    def make(self, table: str, columns: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Make a table of an id and these columns, with these rows."""
        self.execute(f"create table {table} (id bigint primary key, {columns})")
        self.insert(table, rows)

    def fill(self, table: str, columns: str, values: str, first: int, last: int) -> None:
        """Make a table of an id and these columns, with a row of these values for each number n, which is its id."""
        self.execute(f"create table {table} (id bigint primary key, {columns})")
        self.execute(f"insert into {table} select n, {values} from generate_series({first}, {last}) as n")

    def put(self, *keys: str) -> None:
        for key in keys:
            self.legacy.put(key, f"body of {key}".encode())

    @property
    def environment(self) -> dict[str, str]:
        keys = {"ACCESS_KEY_ID": self._server.access_key, "SECRET_ACCESS_KEY": self._server.secret_key}
        found = {f"ROWFERRY_{side}_{name}": value for side in ("LEGACY", "PRODUCTION") for name, value in keys.items()}
        return {"PATH": "/usr/bin:/bin", "AWS_EC2_METADATA_DISABLED": "true", "DATABASE_URL": self.dsn, **found}

    def read_notes(self) -> str:
        """Return the plan with its comments in one line each."""
        return self.plan_path.read_text().replace("\n# ", " ")

    def url_of(self, bucket: str) -> str:
        return f"{self._server.endpoint_url}/{bucket}"

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run a command with the environment of a new user, in this process with all of its workers."""
        with working_here():
            return run_in_this_process(arguments, {**self.environment, **environment}, self.folder)

    def discover(
        self, *arguments: str, legacy: str | None = None, production: str | None = None, **environment: str
    ) -> Done:
        """Run `rowferry plan --discover`, or `--for`, with both buckets; rows that hold keys stay unless told."""
        mode = [] if "--for" in arguments else ["--discover"]
        mode += [] if {"--to", "--rows", "--json"} & {*arguments} else ["--rows", "stay"]
        sides = [
            "--legacy",
            legacy or self.url_of(self.legacy.bucket),
            "--production",
            production or self.url_of("new-media"),
        ]
        return self.run("plan", *mode, *sides, *arguments, **environment)

    def find_entries(self, *arguments: str, legacy: str | None = None, production: str | None = None) -> list[Plan]:
        """Return the [[entries]] of the plan that is written, which must be one; `production`: the bucket's name."""
        url = None if production is None else self.url_of(production)
        well(self.discover(*arguments, legacy=legacy, production=url))
        document = tomllib.loads(self.plan_path.read_text())
        parse_plan(document, "as written")
        return document["entries"]

    def evaluate(self, table: str, expression: str) -> list[str]:
        """Return what an expression of a plan yields for the one row of a table."""
        with psycopg.connect(self.dsn) as connection:
            (row,) = connection.execute(f"select to_json({expression}) from public.{table}".encode()).fetchall()
        return row[0] if isinstance(row[0], list) else [] if row[0] is None else [row[0]]

    def find_json(self, *arguments: str) -> dict[str, Any]:
        return json.loads(well(self.discover("--json", *arguments)).stdout)
