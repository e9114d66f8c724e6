"""Real S3 servers of other projects, each started for the tests on ports of its own and ended with them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from rowferry_lab.servers.s3_servers import MotoServer, S3Server, VersityServer
from s3_servers.ceph import CephServer
from s3_servers.gofakes3 import GoFakeS3Server
from s3_servers.juicefs import JuiceServer
from s3_servers.minio import MinioServer
from s3_servers.own import NotInstalled
from s3_servers.seaweedfs import SeaweedServer
from s3_servers.swift import SwiftServer

VERSITYGW = Path(__file__).parent.parent.parent / ".tools" / "bin" / "versitygw"


def make_versitygw() -> S3Server:
    """Return versitygw. Raises NotInstalled when there is none."""
    if not VERSITYGW.exists():
        raise NotInstalled("versitygw is not here: it is built where `go` is installed")
    return VersityServer(VERSITYGW)


SERVERS: Mapping[str, Callable[[], S3Server]] = {
    "gofakes3": GoFakeS3Server,
    "seaweedfs": SeaweedServer,
    "juicefs": JuiceServer,
    "minio": MinioServer,
    "ceph": CephServer,
    "swift": SwiftServer,
    "versitygw": make_versitygw,
    "moto": MotoServer,
}
"""What makes each server; raises NotInstalled, saying why, where it cannot be started on this machine."""
