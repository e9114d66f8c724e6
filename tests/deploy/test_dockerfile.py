"""worker/Dockerfile and the units of systemd on paper: pinned, patient, and nothing secret or unneeded in them."""

import re
from datetime import timedelta
from pathlib import Path

import botocore
import pytest

from rowferry_worker.daemon import RELEASE_TIMEOUT
from rowferry_worker.monitoring.heartbeat import HEARTBEAT_INTERVAL
from rowferry_worker.options import Options
from rowferry_worker.supervisor.supervisor import LONGEST_SILENCE
from support.checkout import ROOT
from support.docs.command_line import list_options
from support.docs.deployed import ALLOWED, EXPORTER, UNIT, find, read_cloud_files, read_settings

pytestmark = pytest.mark.texts

DOCKERFILE = (ROOT / "worker" / "Dockerfile").read_text()
LINES = DOCKERFILE.splitlines()
CREDENTIALS = Path(botocore.__file__).parent / "credentials.py"


def test_the_worker_is_built_on_an_exact_version_of_python_and_without_the_lab() -> None:
    bases = re.findall(r"^(?:FROM|ARG PYTHON_IMAGE=)(.*)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", bases[0])
    names = {base.split(" AS ")[1] for base in bases if " AS " in base}
    assert {base.split(" AS ")[0].strip() for base in bases[1:]} - names == {"${PYTHON_IMAGE}"}
    stages = DOCKERFILE.split("\nFROM ")
    (worker,) = [stage for stage in stages if stage.partition("\n")[0].endswith(" AS worker")]
    assert stages[-1].strip() == "worker"
    assert "COPY --from=build " in worker


def test_the_image_is_locked_runs_without_root_and_asks_the_health_check() -> None:
    assert any("pip download" in line and "--require-hashes" in line for line in LINES)
    assert [line for line in LINES if line.startswith("USER")] == ["USER 10001:10001"]
    assert 'ENTRYPOINT ["rowferry"]' in LINES
    assert [line.startswith('CMD ["worker"') for line in LINES if line.startswith("CMD")] == [True]
    assert 'CMD ["python", "-m", "rowferry_cli.container_health"]' in DOCKERFILE
    assert "EXPOSE 9464 9465" in LINES


def test_the_build_sees_no_secret_and_nothing_it_does_not_need() -> None:
    """.dockerignore lets in what is listed, and the Dockerfile copies nothing else."""
    listed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    assert {path.split("/")[0] for line in copied for path in line.split()} == set(listed)


def test_the_services_that_the_image_keeps_are_all_that_credentials_come_from() -> None:
    """botocore's own calls of services; sso-oidc refreshes the tokens of sso."""
    asked = set(re.findall(r"client_?creator\(\s*'([\w-]+)'", CREDENTIALS.read_text()))
    assert {"sts", "sso", "signin"} <= asked
    (kept,) = re.findall(r'^ARG AWS_SERVICES="(.*)"$', DOCKERFILE, re.MULTILINE)
    assert {"s3", "sso-oidc", *asked} == set(kept.split())


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
