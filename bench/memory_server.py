"""versitygw over tmpfs: a real S3 server, which checks signatures and digests and has no disk to wait for."""

import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import boto3

from bench.baselines.programs import ACCOUNT, NOT_BUILT
from bench.watch import read_cpu
from rowferry.errors import UsageError
from rowferry_lab.servers.fake_s3.uniform import name_key
from rowferry_lab.servers.s3_servers import VersityServer, check_extended_attributes

PROGRAM = Path(__file__).parent.parent / ".tools" / "bin" / "versitygw"
TMPFS = Path("/dev/shm")
NO_TMPFS = "there is no /dev/shm that takes extended attributes, as Linux has from 6.6 on"
ENTRY_BYTES = 20
"""What a name adds to the size of its folder in tmpfs, `.` and `..` included: BOGO_DIRENT_SIZE of Linux' mm/shmem.c."""


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
        """Return the same counts as the fake's: the objects of `production`, and all bytes that have come.

        The bytes of an object that is being written are in a file without a name, so those that are read are counted.
        """
        objects = count_names(self._place / "production" / "avatar")
        return {
            "seconds": time.monotonic(),
            "objects": objects,
            "bytes_received": read_received(self.pid),
            "cpu_seconds": read_cpu(self.pid),
            "writes_accepted": {"all": objects},
            "writes_refused": {},
        }


def count_names(folder: Path) -> int:
    """Return how many files and folders a folder of tmpfs has, without reading it; 0 where there is none."""
    try:
        return folder.stat().st_size // ENTRY_BYTES - 2
    except FileNotFoundError:
        return 0


def read_received(pid: int) -> int:
    """Return the bytes that a server has read, nearly all of them from its clients; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))


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


def read_version() -> str:
    """Return the version that was built, which its stamp tells; the program itself says nothing of use."""
    return next((stamp.name.removeprefix(".versitygw-v") for stamp in PROGRAM.parent.glob(".versitygw-*")), "unknown")
