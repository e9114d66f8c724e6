"""gofakes3: a fake in Go, objects in memory; checks no credentials."""

from collections.abc import Sequence
from pathlib import Path

from support.s3.servers.own import OneProgram, find_program


class GoFakeS3Server(OneProgram):
    name = "gofakes3"

    def __init__(self) -> None:
        super().__init__()
        self._program = find_program("gofakes3", advice="it is built where `go` is installed")

    def command(self, port: int, folder: Path) -> Sequence[str]:
        return [str(self._program), "-backend", "memory", "-host", f"127.0.0.1:{port}"]
