"""compose.yaml keeps its promises on paper; `make test-compose` keeps them on a Docker engine."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.checkout import ROOT

COMPOSE = ROOT / ".tools" / "bin" / "docker-compose"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
SECRETS: dict[str, dict[str, str]] = yaml.safe_load((ROOT / "compose.yaml").read_text())["secrets"]

READ_BY = {
    "postgres": [ROOT / "compose" / "grafana-role.sql"],
    "grafana": list((ROOT / "dashboards" / "grafana" / "provisioning").rglob("*.yaml")),
}
"""Files that name secrets, and the service that reads them."""
OWN = {"worker", "exporter", "prometheus", "grafana"}
EACH = pytest.mark.parametrize("name", SERVICES)


@EACH
def test_every_image_is_pinned_to_an_exact_version(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.search(r":v?\d+\.\d+[\w.-]*$", image), f"{image} may be another one tomorrow"


def test_the_worker_is_built_on_an_exact_version_of_python() -> None:
    bases = re.findall(r"^(?:FROM|ARG PYTHON_IMAGE=)(.*)$", (ROOT / "worker" / "Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", bases[0])
    stages = {base.split(" AS ")[1] for base in bases if " AS " in base}
    assert {base.split(" AS ")[0].strip() for base in bases[1:]} - stages == {"${PYTHON_IMAGE}"}


def test_the_image_is_locked_and_runs_without_root_and_without_a_shell() -> None:
    lines = (ROOT / "worker" / "Dockerfile").read_text().splitlines()
    assert any("pip download" in line and "--require-hashes" in line for line in lines)
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"]
    assert 'ENTRYPOINT ["rowferry"]' in lines
    assert [line.startswith('CMD ["worker"') for line in lines if line.startswith("CMD")] == [True]


@EACH
def test_only_the_image_that_prepares_holds_the_command_that_deletes(name: str) -> None:
    uses_lab = SERVICES[name]["image"].startswith("rowferry-lab:")
    assert uses_lab == (SERVICES[name].get("command", [""])[0] == "prepare")
    assert uses_lab == (SERVICES[name].get("build", {}).get("target") == "lab")


def test_the_last_stage_of_the_dockerfile_is_the_worker_without_the_lab() -> None:
    stages = (ROOT / "worker" / "Dockerfile").read_text().split("\nFROM ")
    (worker,) = [stage for stage in stages if stage.partition("\n")[0].endswith(" AS worker")]
    assert stages[-1].strip() == "worker"
    assert "COPY --from=build " in worker


@EACH
def test_nobody_but_this_machine_reaches_a_port(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@EACH
def test_every_container_is_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "cap_add" not in service
    assert "privileged" not in service


@EACH
def test_no_secret_is_in_an_environment_or_a_command(name: str) -> None:
    service = SERVICES[name]
    for variable, value in service.get("environment", {}).items():
        secretive = re.search(r"PASSWORD|SECRET|KEY|DATABASE_URL", variable)
        assert not secretive or (variable.endswith("_FILE") and value.startswith("/run/secrets/")), variable
    words = yaml.safe_dump(service)
    for secret in SECRETS.values():
        content = (ROOT / "compose" / "secrets" / Path(secret["file"]).name).read_text().strip()
        assert not re.search(rf"(?<![\w-]){re.escape(content)}(?![\w-])", words) or content == "demo"


@EACH
def test_each_secret_file_that_is_named_is_handed_in(name: str) -> None:
    service = SERVICES[name]
    read = [path.read_text() for path in READ_BY.get(name, [])]
    named = set(re.findall(r"/run/secrets/(\w+)", "\n".join([yaml.safe_dump(service), *read])))
    assert named == set(service.get("secrets", []))
    assert named <= set(SECRETS)


def test_a_user_names_one_folder_to_use_secrets_of_their_own() -> None:
    for secret in SECRETS.values():
        assert secret["file"].startswith("${ROWFERRY_SECRETS:-./compose/secrets}/")


def test_with_servers_of_their_own_users_get_workers_and_dashboards_and_nothing_else() -> None:
    assert {name for name, service in SERVICES.items() if "own" in service["profiles"]} == OWN
    assert {name for name, service in SERVICES.items() if "simulated" in service["profiles"]} == set(SERVICES)
    for name in OWN:
        for needed, how in SERVICES[name].get("depends_on", {}).items():
            assert needed in OWN or how["required"] is False


def test_a_worker_has_longer_to_stop_than_it_takes() -> None:
    from rowferry_worker.daemon import RELEASE_TIMEOUT, Options

    seconds = int(SERVICES["worker"]["stop_grace_period"].removesuffix("s"))
    assert seconds > (Options().grace + RELEASE_TIMEOUT).total_seconds()


def test_the_options_of_a_worker_reach_it_as_variables() -> None:
    from rowferry_cli.work.worker import command

    service = SERVICES["worker"]
    passed = {variable for variable, value in service["environment"].items() if value is None}
    told = {word.partition("=")[0] for word in service["command"]}
    assert passed == {option.envvar for option in command.options if option.opts[-1] not in told}
    assert "deploy" not in service, "one container has a process for each core"


def test_every_host_folder_that_is_mounted_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (ROOT / source).is_dir(), source


@pytest.mark.parametrize("arguments", [(), ("--profile", "own"), ("--env-file", "compose/own.env")])
def test_compose_itself_accepts_the_file(arguments: tuple[str, ...]) -> None:
    if not COMPOSE.exists():
        pytest.skip("docker compose is not here: `make test-compose` builds it")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")}
    command = [COMPOSE, *arguments, "config", "--services"]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr, "compose warns of something"
    assert set(ended.stdout.split()) == (OWN if arguments else set(SERVICES))


def test_the_build_sees_no_secret_and_nothing_it_does_not_need() -> None:
    """.dockerignore lets in what is listed, and the Dockerfile copies nothing else."""
    listed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / "worker" / "Dockerfile").read_text(), re.MULTILINE)
    assert {path.split("/")[0] for line in copied for path in line.split()} == set(listed)
