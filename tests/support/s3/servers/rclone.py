"""rclone's `serve s3`: any storage that rclone reaches as S3, here a folder; rclone calls it experimental."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from support.s3.servers.own import OneProgram, find_program


class RcloneServer(OneProgram):
    name = "rclone"

    def __init__(self) -> None:
        super().__init__()
        self._program = find_program("rclone", advice="it is built where `go` is installed")

    def command(self, port: int, folder: Path) -> Sequence[str]:
        objects = folder / "objects"
        objects.mkdir()
        quiet = ["--config", "", "--cache-dir", f"{folder}/cache", "--log-level", "ERROR"]
        return [str(self._program), "serve", "s3", *quiet, "--addr", f"127.0.0.1:{port}", str(objects)]

    def environment(self) -> Mapping[str, str]:
        return {"RCLONE_AUTH_KEY": f'"{self.access_key},{self.secret_key}"'}
