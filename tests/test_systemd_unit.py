import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from migration import Migration
from rowferry_worker.daemon import RELEASE_TIMEOUT, Options
from rowferry_worker.monitoring.heartbeat import HEARTBEAT_INTERVAL
from rowferry_worker.supervisor import LONGEST_SILENCE

UNIT = Path(__file__).parents[1] / "worker" / "rowferry-worker.service"
OLDEST = 250
"""The version of systemd that the unit asks for."""


def read_settings() -> list[tuple[str, str]]:
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def find(name: str) -> str:
    (value,) = [value for key, value in read_settings() if key == name]
    return value


def seconds(name: str) -> timedelta:
    return timedelta(seconds=int(find(name).removesuffix("s")))


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """The unit as `systemctl enable rowferry-worker` sees it, with a program that is there."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    version = int(analyze("--version").stdout.split()[1])
    if version < OLDEST:
        pytest.skip(f"systemd {version} is older than the {OLDEST} that the unit asks for")
    words = UNIT.read_text().replace("/opt/rowferry/bin/rowferry", shutil.which("true") or "/bin/true")
    (tmp_path / UNIT.name).write_text(words)
    return tmp_path / UNIT.name


def analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


def test_systemd_finds_no_fault_in_the_unit(instance: Path) -> None:
    ended = analyze("verify", instance)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_systemd_finds_the_unit_hardened(instance: Path) -> None:
    ended = analyze("security", "--offline=yes", "--threshold=20", instance)  # tenths: 2.0 of 10 at most
    assert ended.returncode == 0, ended.stdout[-300:]


def test_a_worker_has_longer_to_stop_than_it_takes() -> None:
    assert seconds("TimeoutStopSec") > Options().grace + RELEASE_TIMEOUT


def test_the_watchdog_waits_for_many_beats() -> None:
    assert find("Type") == "notify"
    assert seconds("WatchdogSec") >= 10 * HEARTBEAT_INTERVAL


def test_every_secret_is_a_credential_and_none_is_in_the_environment() -> None:
    credentials = {value.partition(":")[0] for key, value in read_settings() if key == "LoadCredential"}
    environment = [value.partition("=") for key, value in read_settings() if key == "Environment"]
    files = {variable: value.removeprefix("%d/") for variable, _, value in environment if "_FILE" in variable}
    assert set(files.values()) == credentials
    assert all(variable.endswith(f"{name.upper()}_FILE") for variable, name in files.items())


def test_the_program_takes_the_options_that_the_unit_gives() -> None:
    from rowferry_cli.work.worker import command

    assert find("ExecStart").split()[1:] == ["worker"]
    variables = {option.envvar for option in command.params}
    environment = [word for key, value in read_settings() if key == "Environment" for word in value.split()]
    options = [word.partition("=")[0] for word in environment if word.startswith("ROWFERRY_") and "_FILE=" not in word]
    assert options
    assert set(options) <= variables
    assert set(re.findall(r"ROWFERRY_WORKER_\w+", UNIT.read_text())) <= variables


def test_the_supervisor_is_as_patient_with_a_process_as_systemd_is_with_the_supervisor() -> None:
    assert seconds("WatchdogSec") == LONGEST_SILENCE


def test_a_process_without_memory_takes_no_other_with_it() -> None:
    assert find("OOMPolicy") == "continue"


REFUSE_WRITABLE_CODE = """
import ctypes, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, since Linux 6.3
    sys.exit(77)
os.execv(sys.executable, [sys.executable, "-m", "rowferry_cli", "worker", "--until-empty"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is for Linux")
def test_a_worker_does_its_work_without_memory_that_is_writable_and_executable(migration: Migration) -> None:
    """What MemoryDenyWriteExecute= of the unit forbids, forbidden by the kernel itself."""
    assert find("MemoryDenyWriteExecute") == "yes"
    migration.fill(20)
    migration.enqueue()
    ended = subprocess.run([sys.executable, "-c", REFUSE_WRITABLE_CODE], capture_output=True, timeout=200, check=False)
    if ended.returncode == 77:
        pytest.skip("this kernel has no MDWE")
    assert ended.returncode == 0, ended.stderr
    migration.audit()
