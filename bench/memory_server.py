"""versitygw over tmpfs: a real S3 server, which checks signatures and digests and has no disk to wait for."""

import os
import random
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import boto3

from bench.baselines import ACCOUNT, NOT_BUILT
from rowferry.errors import UsageError
from rowferry_lab.servers.fake_s3.uniform import name_key
from rowferry_lab.servers.s3_servers import VersityServer, check_extended_attributes

PROGRAM = Path(__file__).parent.parent / ".tools" / "bin" / "versitygw"
TMPFS = Path("/dev/shm")
NO_TMPFS = "there is no /dev/shm that takes extended attributes, as Linux has from 6.6 on"


class MemoryServer(VersityServer):
    """A server whose bucket `legacy` has so many objects, as hard links to one file: it is filled in no time."""

    name = "versitygw"
    parent: ClassVar[Path | None] = TMPFS

    def __init__(self, body_bytes: int, objects: int) -> None:
        """Take the size of an object, and how many there are."""
        super().__init__(PROGRAM)
        self.access_key, self.secret_key = ACCOUNT["AWS_ACCESS_KEY_ID"], ACCOUNT["AWS_SECRET_ACCESS_KEY"]
        self._body_bytes = body_bytes
        self._objects = objects

    def start(self) -> None:
        """Start the server, make its buckets and fill one."""
        super().start()
        account = {"aws_access_key_id": self.access_key, "aws_secret_access_key": self.secret_key}
        s3: Any = boto3.client("s3", endpoint_url=self.endpoint_url, region_name=ACCOUNT["AWS_REGION"], **account)
        for bucket in ("legacy", "production"):
            s3.create_bucket(Bucket=bucket)
        body = random.Random(1).randbytes(self._body_bytes)
        s3.put_object(Bucket="legacy", Key=name_key(1), Body=body, ContentType="image/png")
        one = self._place / "legacy" / name_key(1)
        for number in range(2, self._objects + 1):
            os.link(one, self._place / "legacy" / name_key(number))

    @property
    def _place(self) -> Path:
        """Return the folder of the buckets."""
        assert self._folder is not None
        return self._folder / "objects"

    def read_stats(self) -> dict[str, Any]:
        """Return how many objects `production` has."""
        folder = self._place / "production" / "avatar"
        return {"objects": sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0}


def find_obstacle() -> str | None:
    """Return why the server cannot be here; None where it can."""
    if not PROGRAM.is_file():
        return NOT_BUILT
    try:
        with tempfile.TemporaryDirectory(dir=TMPFS) as folder:
            check_extended_attributes(Path(folder))
    except (OSError, UsageError):
        return NO_TMPFS
    return None
