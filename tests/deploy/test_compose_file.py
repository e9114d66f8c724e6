"""compose.yaml keeps its promises on paper; `make test-compose` keeps them on a Docker engine."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from rowferry_cli.work.worker import command as worker_command
from rowferry_worker.daemon import RELEASE_TIMEOUT
from rowferry_worker.options import Options
from support.checkout import ROOT
from support.docs.deployed import ALLOWED, GUARD, OWN, SECRETS, SERVICES

pytestmark = pytest.mark.texts

READ_BY = {
    "postgres": [ROOT / "compose" / "grafana-role.sql"],
    "grafana": list((ROOT / "dashboards" / "grafana" / "provisioning").rglob("*.yaml")),
}
"""Files that name secrets, and the service that reads them."""
SCRIPT = ROOT / "compose" / "refuse_demo_secrets.py"
DEMO = ROOT / "compose" / "secrets"
HANDED = sorted({Path(secret).name for name in OWN for secret in SERVICES[name].get("secrets", [])})
OWN_ENV = (ROOT / "compose" / "own.env").read_text()


def test_every_service_is_pinned_hardened_and_reached_from_this_machine_alone(subtests: pytest.Subtests) -> None:
    assert len(SERVICES) > 5, "a test without a subject cannot fail"
    for name, service in SERVICES.items():
        with subtests.test(name):
            assert re.search(r":v?\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$", service["image"])
            assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert service["ulimits"] == {"core": 0}
            assert not {"cap_add", "privileged"} & set(service)
            sources = [volume.partition(":")[0] for volume in service.get("volumes", [])]
            assert all((ROOT / source).is_dir() for source in sources if source.startswith("."))


def test_only_the_image_that_prepares_holds_the_command_that_deletes(subtests: pytest.Subtests) -> None:
    for name, service in SERVICES.items():
        with subtests.test(name):
            uses_lab = service["image"].startswith("rowferry-lab:")
            assert uses_lab == (service.get("command", [""])[0] == "prepare")
            assert uses_lab == (service.get("build", {}).get("target") == "lab")


def test_no_secret_is_in_an_environment_or_a_command(subtests: pytest.Subtests) -> None:
    contents = [(DEMO / Path(one["file"]).name).read_text().strip() for one in SECRETS.values()]
    for name, service in SERVICES.items():
        with subtests.test(name):
            for variable, value in service.get("environment", {}).items():
                secretive = re.search(r"PASSWORD|SECRET|KEY|DATABASE_URL", variable)
                assert not secretive or (variable.endswith("_FILE") and value.startswith("/run/secrets/")), variable
            words = yaml.safe_dump(service)
            for content in contents:
                assert not re.search(rf"(?<![\w-]){re.escape(content)}(?![\w-])", words) or content == "demo"


def test_each_secret_file_that_is_named_is_handed_in(subtests: pytest.Subtests) -> None:
    for name, service in SERVICES.items():
        with subtests.test(name):
            read = [path.read_text() for path in READ_BY.get(name, [])]
            named = set(re.findall(r"/run/secrets/(\w+)", "\n".join([yaml.safe_dump(service), *read])))
            assert named == set(service.get("secrets", []))
            assert named <= set(SECRETS)
    assert all(secret["file"].startswith("${ROWFERRY_SECRETS:-./compose/secrets}/") for secret in SECRETS.values())


def test_with_servers_of_their_own_users_get_workers_and_dashboards_and_nothing_else() -> None:
    assert {name for name, service in SERVICES.items() if "own" in service["profiles"]} == OWN
    assert {name for name, service in SERVICES.items() if "simulated" in service["profiles"]} == set(SERVICES) - {GUARD}
    for name in OWN:
        for needed, how in SERVICES[name].get("depends_on", {}).items():
            assert needed in OWN - {GUARD} or how["required"] is False


def test_a_worker_has_its_options_and_longer_to_stop_than_it_takes() -> None:
    service = SERVICES["worker"]
    seconds = int(service["stop_grace_period"].removesuffix("s"))
    assert seconds > (Options().grace + RELEASE_TIMEOUT).total_seconds()
    passed = {variable for variable, value in service["environment"].items() if value is None} - set(ALLOWED)
    told = {word.partition("=")[0] for word in service["command"]}
    assert passed == {option.envvar for option in worker_command.options if option.opts[-1] not in told}
    assert "deploy" not in service, "one container has a process for each core"


@pytest.mark.parametrize("name", ["worker", "enqueue"])
def test_what_plans_may_ask_can_be_limited(name: str) -> None:
    given = {variable: SERVICES[name]["environment"].get(variable, "not passed") for variable in ALLOWED}
    assert given == dict.fromkeys(ALLOWED)
    assert all(f"\n{variable}=" in OWN_ENV for variable in ALLOWED)


@pytest.mark.parametrize("arguments", [(), ("--profile", "own"), ("--env-file", "compose/own.env")])
def test_compose_itself_accepts_the_file(arguments: tuple[str, ...]) -> None:
    compose = ROOT / ".tools" / "bin" / "docker-compose"
    if not compose.exists():
        pytest.skip("docker compose is not here: `make test-compose` builds it")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")}
    command = [compose, *arguments, "config", "--services"]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), "compose refuses it, or warns of something"
    assert set(ended.stdout.split()) == (OWN if arguments else set(SERVICES))


# With servers of one's own nothing starts on what everybody knows


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Secrets of one's own, in the place of all that are handed to services."""
    for name in HANDED:
        (tmp_path / name).write_text(f"my own {name}\n")
    return tmp_path


def start(own: Path, **environment: str) -> tuple[int, str]:
    """Run what the service runs, on this folder in the place of /run/secrets; return its exit status and words."""
    _, _, demo = SERVICES[GUARD]["entrypoint"]
    assert f"./compose/secrets:{demo}:ro" in SERVICES[GUARD]["volumes"]
    files = [str(own / Path(word).name) for word in SERVICES[GUARD]["command"]]
    command = [sys.executable, SCRIPT, DEMO, *files]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stderr


def test_secrets_of_ones_own_are_taken_and_each_of_the_demo_is_refused_by_name(own: Path) -> None:
    (own / "legacy_access_key_id").write_text("\n")  # an empty key is one, too
    assert start(own) == (0, "")
    for name in HANDED:
        before = (own / name).read_text()
        shutil.copy(DEMO / name, own / name)
        words = f"The secret {name} is that of the demo, which everybody knows: put your own into its file.\n"
        assert start(own) == (2, words)
        (own / name).write_text(before)


def test_a_secret_that_the_containers_may_not_read_is_named(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, which runs tests too, every file could be read."""
    list_faults = runpy.run_path(str(SCRIPT))["list_faults"]
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=PermissionError))
    (fault,) = list_faults(DEMO, [own / "database_url"], "false")
    assert fault.startswith("The secret database_url cannot be read by the containers: give it mode 640")


def test_everything_waits_for_that_and_reads_secrets_by_a_group(subtests: pytest.Subtests) -> None:
    waits = {"condition": "service_completed_successfully", "required": False}
    for name in OWN:
        with subtests.test(name):
            assert SERVICES[name]["group_add"] == ["${ROWFERRY_SECRETS_GROUP:-10001}"]
            assert name in {GUARD, "prometheus"} or SERVICES[name]["depends_on"][GUARD] == waits
    assert re.search(r"^ROWFERRY_SECRETS_GROUP=\d+$", OWN_ENV, re.MULTILINE)
    assert "chmod 640 compose/own/*" in (ROOT / "docs" / "workers.md").read_text()


def test_grafana_is_viewed_without_a_password_on_simulated_data_alone(own: Path) -> None:
    value = SERVICES["grafana"]["environment"]["GF_AUTH_ANONYMOUS_ENABLED"]
    assert value == SERVICES[GUARD]["environment"]["ROWFERRY_GRAFANA_ANONYMOUS"]
    assert value == "${ROWFERRY_GRAFANA_ANONYMOUS:-false}"
    assert "\nROWFERRY_GRAFANA_ANONYMOUS=true\n" in (ROOT / ".env").read_text()
    assert "ROWFERRY_GRAFANA_ANONYMOUS" not in OWN_ENV
    status, words = start(own, ROWFERRY_GRAFANA_ANONYMOUS="true")
    assert (status, words.count("\n")) == (2, 1)
