"""The environment of demo and sweep: a PostgreSQL, an S3 server, a plan, and the variables that lead to them."""

# pyright: reportMissingTypeStubs=false
# boto3 carries no types.

import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3.session

from rowferry.plan import Plan
from rowferry.plan_file import read_plan
from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import FakeS3Server

PLAN = """\
[migration]
name = "avatars"
simulated = true                    # `rowferry prepare` may recreate everything here

[legacy]
bucket = "sketch-legacy-s3"
endpoint_url = "{endpoint_url}"

[production]
bucket = "sketch-production-s3"
endpoint_url = "{endpoint_url}"

[[entries]]
table = "public.avatars"
id = "id"
key = "path"
from = "image/"
to = "avatar/"
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """Running servers, a plan file, and the variables that lead to them."""

    folder: Path
    plan_path: Path
    s3_server: FakeS3Server
    variables: dict[str, str]

    @property
    def plan(self) -> Plan:
        """Return what the plan file says now."""
        return read_plan(self.plan_path)

    def open_s3(self) -> Any:
        """Return a boto3 client of the S3 server, as an application has one."""
        session: Any = boto3.session.Session()
        return session.client(
            "s3",
            region_name="us-east-1",
            endpoint_url=self.s3_server.endpoint_url,
            aws_access_key_id=self.s3_server.access_key,
            aws_secret_access_key=self.s3_server.secret_key,
        )


@contextmanager
def start_environment(choose_s3: Callable[[], FakeS3Server] = FakeS3Server) -> Generator[Environment]:
    """Start both servers, write the plan, and point this process's environment at them; undo all of it afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="rowferry-demo-") as name,
        EmbeddedPostgres(user="demo") as postgres,  # not `rowferry`, whose new tables went into that schema
        choose_s3() as s3_server,
    ):
        folder = Path(name)
        plan_path = folder / "rowferry.toml"
        plan_path.write_text(PLAN.format(endpoint_url=s3_server.endpoint_url), encoding="utf-8")
        variables = {
            "DATABASE_URL": postgres.dsn(),
            "ROWFERRY_PLAN": str(plan_path),
            **{f"ROWFERRY_{side}_ACCESS_KEY_ID": s3_server.access_key for side in ("LEGACY", "PRODUCTION")},
            **{f"ROWFERRY_{side}_SECRET_ACCESS_KEY": s3_server.secret_key for side in ("LEGACY", "PRODUCTION")},
        }
        before = dict(os.environ)
        for variable in [name for name in before if name.startswith(("ROWFERRY_", "DATABASE_URL"))]:
            del os.environ[variable]  # What is set for the real migration is not meant for this one.
        os.environ.update(variables)
        try:
            yield Environment(folder, plan_path, s3_server, variables)
        finally:
            os.environ.clear()
            os.environ.update(before)
