"""The units of systemd say what the programs take, and wait as long as these need."""

import re
from datetime import timedelta

import pytest

from rowferry_worker.daemon import RELEASE_TIMEOUT
from rowferry_worker.monitoring.heartbeat import HEARTBEAT_INTERVAL
from rowferry_worker.options import Options
from rowferry_worker.supervisor.supervisor import LONGEST_SILENCE
from support.docs.command_line import list_options
from support.docs.deployed import ALLOWED, EXPORTER, UNIT, find, read_cloud_files, read_settings

pytestmark = pytest.mark.texts

BOTH = (UNIT, EXPORTER)


def seconds(name: str) -> timedelta:
    return timedelta(seconds=int(find(name).removesuffix("s")))


def test_systemd_is_as_patient_as_the_program_needs() -> None:
    assert seconds("TimeoutStopSec") > Options().grace + RELEASE_TIMEOUT
    assert find("Type") == "notify"
    assert seconds("WatchdogSec") >= 10 * HEARTBEAT_INTERVAL
    assert seconds("WatchdogSec") == LONGEST_SILENCE, "the supervisor is as patient with a process"


def test_no_unit_leaves_a_core_and_a_process_without_memory_takes_no_other_with_it() -> None:
    assert [find("LimitCORE", unit) for unit in BOTH] == ["0", "0"]
    assert find("OOMPolicy") == "continue"


def test_every_secret_is_a_credential_and_none_is_in_the_environment(subtests: pytest.Subtests) -> None:
    for unit in BOTH:
        with subtests.test(unit.stem):
            credentials = {value.partition(":")[0] for key, value in read_settings(unit) if key == "LoadCredential"}
            environment = [value.partition("=") for key, value in read_settings(unit) if key == "Environment"]
            files = {variable: value.removeprefix("%d/") for variable, _, value in environment if "_FILE" in variable}
            assert set(files.values()) == credentials
            assert all(variable.endswith(f"{name.upper()}_FILE") for variable, name in files.items())


def test_the_program_takes_the_options_that_the_unit_gives(subtests: pytest.Subtests) -> None:
    for unit in BOTH:
        with subtests.test(unit.stem):
            program, name = find("ExecStart", unit).split()
            assert (program, unit.stem) == ("/opt/rowferry/bin/rowferry", f"rowferry-{name}")
            variables = {option.envvar for option in list_options(name) if option.envvar}
            given = [word for key, value in read_settings(unit) if key == "Environment" for word in value.split()]
            options = [
                word.partition("=")[0] for word in given if word.startswith("ROWFERRY_") and "_FILE=" not in word
            ]
            assert options
            assert set(options) <= variables
            assert set(re.findall(rf"ROWFERRY_{name.upper()}_\w+", unit.read_text())) <= variables


def test_what_plans_may_ask_of_a_host_has_its_place() -> None:
    (file,) = [file for file in read_cloud_files() if file["path"] == find("EnvironmentFile").removeprefix("-")]
    assert all(f"{variable}=\n" in file["content"] for variable in ALLOWED)
    assert all(variable in UNIT.read_text() for variable in ALLOWED)
