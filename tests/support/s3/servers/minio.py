"""MinIO over four folders, which is the least that its erasure code takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from support.s3.servers.own import OneProgram, find_program


class MinioServer(OneProgram):
    name = "minio"

    def __init__(self) -> None:
        super().__init__()
        self._program = find_program("minio", advice="it is built where `go` is installed")

    def command(self, port: int, folder: Path) -> Sequence[str]:
        return [str(self._program), "server", "--quiet", "--address", f"127.0.0.1:{port}", f"{folder}/d{{1...4}}"]

    def environment(self) -> Mapping[str, str]:
        return {"MINIO_ROOT_USER": self.access_key, "MINIO_ROOT_PASSWORD": self.secret_key, "MINIO_CI_CD": "1"}
