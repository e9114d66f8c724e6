"""Real S3 servers of other projects, and proxies before one, each started for the tests on ports of its own."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from rowferry_lab.servers.s3_servers import MotoServer, S3Server, VersityServer
from support.checkout import ROOT
from support.s3.servers.ceph import CephServer
from support.s3.servers.own import NotInstalled, running
from support.s3.servers.proxies import ApacheProxy, NginxProxy
from support.s3.servers.single import (
    GarageServer,
    GoFakeS3Server,
    JuiceServer,
    LocalStackServer,
    MinioServer,
    RcloneServer,
    S3ProxyServer,
    S3sFsServer,
    SeaweedServer,
)
from support.s3.servers.swift import SwiftServer

VERSITYGW = ROOT / ".tools" / "bin" / "versitygw"


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
    "rclone": RcloneServer,
    "nginx": lambda: NginxProxy(make_versitygw(), owned=True),
    "apache": lambda: ApacheProxy(make_versitygw(), owned=True),
    "versitygw": make_versitygw,
    "moto": MotoServer,
}
"""What makes each server; raises NotInstalled, saying why, where it cannot be started on this machine."""
MORE_SERVERS: Mapping[str, Callable[[], S3Server]] = {
    "s3proxy": S3ProxyServer,
    "localstack": LocalStackServer,
    "s3s-fs": S3sFsServer,
    "garage": GarageServer,
}
"""Those that `make test-servers` runs where `make more-servers` has fetched them."""


def running_server(name: str) -> AbstractContextManager[S3Server]:
    """Run a server; the test is skipped where it cannot be started on this machine."""
    return running(SERVERS[name])
