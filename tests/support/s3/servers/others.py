"""Servers that need Java or a whole environment of their own: `make more-servers` fetches them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from support.s3.servers.own import TOOLS, NotInstalled, OneProgram, find_program

ADVICE = "`make more-servers` fetches it"


class LocalStackServer(OneProgram):
    """LocalStack's S3, in Python: objects in memory; it checks no secret."""

    name = "localstack"

    def __init__(self) -> None:
        super().__init__()
        self._program = TOOLS / "localstack" / "bin" / "python"
        if not self._program.exists():
            raise NotInstalled(f"LocalStack is not here: {ADVICE}")

    def command(self, port: int, folder: Path) -> Sequence[str]:
        self._environment = {
            "GATEWAY_LISTEN": f"127.0.0.1:{port}",
            "FILESYSTEM_ROOT": str(folder),
            "SERVICES": "s3",
            "DISABLE_EVENTS": "1",
            "SKIP_SSL_CERT_DOWNLOAD": "1",
            "DNS_ADDRESS": "0",
        }
        return [str(self._program), "-m", "localstack.runtime.main"]

    def environment(self) -> Mapping[str, str]:
        return self._environment


class S3ProxyServer(OneProgram):
    """s3proxy, in Java, before files of a folder."""

    name = "s3proxy"
    takes_checksums = False

    def __init__(self) -> None:
        super().__init__()
        self._java = find_program("java", advice="install a Java of version 17 or later")
        self._jars = TOOLS / "jars" / "s3proxy"
        if not self._jars.exists():
            raise NotInstalled(f"s3proxy is not here: {ADVICE}")

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
        java = [str(self._java), "-Xmx1g", "-cp", f"{self._jars}/*", "org.gaul.s3proxy.Main"]
        return [*java, "--properties", str(written)]
