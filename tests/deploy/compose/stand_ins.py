"""Builds the stand-in images of the proof: one Debian with all that they need, and a thin image for each on top."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from engine import TOP, Engine, Impossible

HERE = Path(__file__).parent / "stand-ins"
PACKAGES = "ca-certificates,postgresql-15,prometheus,python3,python3-venv,wget"
SUITE = "bookworm"
CACHE = TOP / ".tools" / f"stand-in-{SUITE}.tar.gz"
VERSITYGW = TOP / ".tools" / "bin" / "versitygw"
TRUST = Path("/etc/ssl/certs/ca-certificates.crt")


def build_stand_ins(engine: Engine) -> None:
    """Have the images `rowferry-stand-in/*` in the engine. Raises Impossible where Debian's packages cannot be had."""
    if not VERSITYGW.exists():
        raise Impossible(
            "The stand-in for the S3 server is versitygw, which `make servers` builds where `go` is installed."
        )
    if not CACHE.exists():
        _make_root()
    engine.docker("import", CACHE, "rowferry-stand-in/debian", seconds=300)
    with TemporaryDirectory() as context:
        for path in [*HERE.iterdir(), VERSITYGW]:
            shutil.copy2(path, context)
        for target in ("python", "postgres", "s3", "prometheus"):
            engine.docker(
                "build", "--network=none", "--target", target, "--tag", f"rowferry-stand-in/{target}", context
            )


def _make_root() -> None:
    """Write the archive of a small Debian with the packages in it; it trusts the certificates that this host trusts."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Impossible("The stand-in images are made with debootstrap, by root, on Debian.")
    if not shutil.which("debootstrap"):
        _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "debootstrap")
    with TemporaryDirectory(prefix="rf-debian-") as folder:
        root = Path(folder) / "root"
        _run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), _find_mirror())
        shutil.copy2(TRUST, root / TRUST.relative_to("/"))
        for waste in ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(root / waste, ignore_errors=True)
        unfinished = CACHE.with_suffix(f".{time.time_ns()}")
        _run("tar", "--create", "--use-compress-program=gzip -1", f"--file={unfinished}", f"--directory={root}", ".")
        unfinished.rename(CACHE)


def _find_mirror() -> str:
    """Return the mirror that this host's own packages come from."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    if not found:
        raise Impossible("This host knows no Debian mirror: run `apt-get update` first.")
    return found[0]


def _run(*command: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    if ended.returncode:
        raise Impossible(f"{command[0]} failed here: {(ended.stderr or ended.stdout).strip()[-300:]}")
