"""Runs the servers of several hosts until its input is closed: several_hosts_servers.py ADDRESS VERSITYGW."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import MotoServer, S3Server, VersityServer
from support.postgres.ordinary import OWNER, as_owner, ordinary_postgres

PLAN = """
[migration]
name = "hosts"
simulated = true
[legacy]
bucket = "legacy"
endpoint_url = "{endpoint}"
[production]
bucket = "production"
endpoint_url = "{endpoint}"
[[entries]]
table = "public.avatars"
id = "id"
key = "path"
from = "image/"
to = "avatar/"
"""


class OpenVersity(VersityServer):
    """Listens on every address of its namespace."""

    def command(self, port: int, folder: Path) -> Sequence[str]:
        return [word.replace("127.0.0.1:", ":") for word in super().command(port, folder)]


class OpenMoto(MotoServer):
    """Listens on every address of its namespace."""

    def command(self, port: int, folder: Path) -> Sequence[str]:
        return [word.replace("127.0.0.1", "0.0.0.0") for word in super().command(port, folder)]


def serve(address: str, s3: S3Server) -> None:
    with TemporaryDirectory(prefix="rf-hba-") as folder:
        Path(folder).chmod(0o755)
        hba = Path(folder) / "pg_hba.conf"
        hba.write_text("local all all scram-sha-256\nhost all all all scram-sha-256\n")
        settings = {"listen_addresses": "*", "hba_file": str(hba)}
        with ordinary_postgres(settings=settings) as postgres, s3:
            print(json.dumps(describe(address, postgres, s3)), flush=True)  # noqa: T201
            sys.stdin.read()


def describe(address: str, postgres: EmbeddedPostgres, s3: S3Server) -> dict[str, object]:
    url = as_owner(postgres.dsn()).replace("127.0.0.1", address)
    environment = {"DATABASE_URL": url}
    for side in ("LEGACY", "PRODUCTION"):
        environment[f"ROWFERRY_{side}_ACCESS_KEY_ID"] = s3.access_key
        environment[f"ROWFERRY_{side}_SECRET_ACCESS_KEY"] = s3.secret_key
    login = f"user={OWNER} password={postgres.password}"
    return {
        "environment": environment,
        "plan": PLAN.format(endpoint=s3.endpoint_url.replace("127.0.0.1", address)),
        "socket_dsn": f"host={postgres.socket_folder} port={postgres.port} dbname=postgres {login}",
    }


if __name__ == "__main__":
    _, listening, program = sys.argv
    serve(listening, OpenVersity(Path(program)) if program else OpenMoto())
