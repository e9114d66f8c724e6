"""systemd finds no fault in the units, the programs run as these say, and obey as the first process of a container."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import AF_UNIX, SOCK_DGRAM, create_server, socket
from typing import Any

import pytest

from support.docs.deployed import EXPORTER, UNIT, find, read_settings
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.processes.scrape import fetch

BOTH = pytest.mark.parametrize("unit", [UNIT, EXPORTER], ids=lambda unit: unit.stem)
OLDEST = 250
"""The version of systemd that the unit asks for."""


@pytest.fixture
def instance(tmp_path: Path, unit: Path) -> Path:
    """The unit as `systemctl enable` sees it, with a program that is there."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    version = int(analyze("--version").stdout.split()[1])
    if version < OLDEST:
        pytest.skip(f"systemd {version} is older than the {OLDEST} that the unit asks for")
    words = unit.read_text().replace("/opt/rowferry/bin/rowferry", shutil.which("true") or "/bin/true")
    (tmp_path / unit.name).write_text(words)
    return tmp_path / unit.name


def analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


@BOTH
def test_systemd_finds_the_unit_sound_and_hardened_and_a_fault_where_there_is_one(instance: Path) -> None:
    """A unit that is not checked would pass as well."""
    hardened = ("security", "--offline=yes", "--threshold=15", instance)  # tenths: 1.5 of 10 at most
    ended = analyze("verify", instance)
    assert (ended.returncode, ended.stderr) == (0, "")
    ended = analyze(*hardened)
    assert ended.returncode == 0, ended.stdout[-300:]
    instance.write_text(instance.read_text().replace("[Install]", "NoNewPriviledges=yes\n[Install]"))
    assert "NoNewPriviledges" in analyze("verify", instance).stderr
    instance.write_text(instance.read_text().replace("SystemCallFilter=", "#").replace("CapabilityBoundingSet=", "#"))
    assert analyze(*hardened).returncode != 0


REFUSE_WRITABLE_CODE = """
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, since Linux 6.3
    sys.exit(77)
os.execv(sys.executable, [sys.executable, "-m", "rowferry_cli", "worker", "--until-empty"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is for Linux")
@pytest.mark.soak
def test_a_worker_does_its_work_without_memory_that_is_writable_and_executable(migration: Migration) -> None:
    """What MemoryDenyWriteExecute= of the unit forbids, forbidden by the kernel itself."""
    assert find("MemoryDenyWriteExecute") == "yes"
    migration.given(20)
    ended = subprocess.run([sys.executable, "-c", REFUSE_WRITABLE_CODE], capture_output=True, timeout=200, check=False)
    if ended.returncode == 77:
        pytest.skip("this kernel has no MDWE")
    assert ended.returncode == 0, ended.stderr
    migration.audit()


@pytest.fixture
def started(migration: Migration, tmp_path: Path) -> Iterator[Callable[[Path], tuple[subprocess.Popen[str], socket]]]:
    """Return what starts a unit's program as the unit says, without systemd: credentials, variables, no privileges."""
    running: list[subprocess.Popen[str]] = []
    manager = socket(AF_UNIX, SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(60)

    def start(unit: Path) -> tuple[subprocess.Popen[str], socket]:
        given = tmp_path / "credentials"
        given.mkdir(mode=0o700)
        for name in (value.partition(":")[0] for key, value in read_settings(unit) if key == "LoadCredential"):
            content = migration.dsn if name == "database_url" else os.environ.get(f"ROWFERRY_{name.upper()}", "")
            (given / name).write_text(content)
            (given / name).chmod(0o400)
        lines = [value.replace("%d", str(given)) for key, value in read_settings(unit) if key == "Environment"]
        environment = dict(word.split("=", 1) for line in lines for word in line.split())
        environment |= {"ROWFERRY_WORKER_METRICS_PORT": "0", "ROWFERRY_EXPORTER_PORT": "0"}  # as worker.env could
        environment |= {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": str(tmp_path / "notify")}
        command = [sys.executable, "-m", "rowferry_cli", *find("ExecStart", unit).split()[1:]]
        drop = ["setpriv", "--no-new-privs", "--inh-caps=-all"]
        drop += ["--bounding-set=-all"] if os.geteuid() == 0 else []
        with (tmp_path / "log").open("w") as log:
            running.append(subprocess.Popen([*drop, *command], env=environment, stderr=log, umask=0o077, text=True))
        return running[0], manager

    yield start
    manager.close()
    for process in running:
        process.kill()
        process.wait(60)


needs_setpriv = pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not here")


@needs_setpriv
def test_the_worker_runs_as_the_unit_says(migration: Migration, started: Callable[..., Any]) -> None:
    migration.given(20)
    process, manager = started(UNIT)
    assert "READY=1" in manager.recv(4096).decode()
    migration.wait_until_done()
    migration.audit()
    process.terminate()
    assert process.wait(60) == 0


@needs_setpriv
def test_the_exporter_runs_as_the_unit_says(tmp_path: Path, started: Callable[..., Any]) -> None:
    process, _ = started(EXPORTER)
    log = tmp_path / "log"
    wait_for(lambda: '"message": "serving metrics"' in log.read_text())
    port = json.loads(log.read_text().splitlines()[0])["port"]
    wait_for(lambda: fetch(port, "/readyz")[0] == 200)
    process.terminate()
    assert process.wait(60) == 0


@pytest.mark.skipif(not shutil.which("unshare") or os.geteuid() != 0, reason="only root makes PID namespaces")
def test_the_first_process_of_a_container_obeys_sigterm_in_the_middle_of_anything() -> None:
    """The kernel drops SIGTERM for process 1 unless it has a handler; `docker stop` would then wait and kill."""
    with create_server(("127.0.0.1", 0)) as mute_database:
        url = f"postgresql://nobody@127.0.0.1:{mute_database.getsockname()[1]}/none"
        command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "rowferry_cli", "init"]
        with subprocess.Popen(command, env={**os.environ, "DATABASE_URL": url}, stdin=subprocess.DEVNULL) as parent:
            waits_for_an_answer, _ = mute_database.accept()
            with waits_for_an_answer:
                first = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text())
                os.kill(first, signal.SIGTERM)
                assert parent.wait(100) == 128 + signal.SIGTERM
