"""compose.yaml keeps its promises on paper; `make test-compose` keeps them on a Docker engine."""

import re
from pathlib import Path

import pytest
import yaml

from support.checkout import ROOT
from support.docs.compose import ALLOWED, GUARD, OWN, SECRETS, SERVICES

pytestmark = pytest.mark.texts

READ_BY = {
    "postgres": [ROOT / "compose" / "grafana-role.sql"],
    "grafana": list((ROOT / "dashboards" / "grafana" / "provisioning").rglob("*.yaml")),
}
"""Files that name secrets, and the service that reads them."""


def test_every_image_is_pinned_to_an_exact_version(subtests: pytest.Subtests) -> None:
    assert len(SERVICES) > 5, "a test without a subject cannot fail"
    for name, service in SERVICES.items():
        with subtests.test(name):
            assert re.search(r":v?\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$", service["image"]), (
                "it may be another one tomorrow"
            )


def test_only_the_image_that_prepares_holds_the_command_that_deletes(subtests: pytest.Subtests) -> None:
    for name, service in SERVICES.items():
        with subtests.test(name):
            uses_lab = service["image"].startswith("rowferry-lab:")
            assert uses_lab == (service.get("command", [""])[0] == "prepare")
            assert uses_lab == (service.get("build", {}).get("target") == "lab")


def test_nobody_but_this_machine_reaches_a_port(subtests: pytest.Subtests) -> None:
    for name, service in SERVICES.items():
        with subtests.test(name):
            assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_every_container_is_hardened(subtests: pytest.Subtests) -> None:
    for name, service in SERVICES.items():
        with subtests.test(name):
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert "cap_add" not in service
            assert "privileged" not in service


def test_no_secret_is_in_an_environment_or_a_command(subtests: pytest.Subtests) -> None:
    contents = [(ROOT / "compose" / "secrets" / Path(one["file"]).name).read_text().strip() for one in SECRETS.values()]
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


def test_a_user_names_one_folder_to_use_secrets_of_their_own() -> None:
    for secret in SECRETS.values():
        assert secret["file"].startswith("${ROWFERRY_SECRETS:-./compose/secrets}/")


def test_with_servers_of_their_own_users_get_workers_and_dashboards_and_nothing_else() -> None:
    assert {name for name, service in SERVICES.items() if "own" in service["profiles"]} == OWN
    assert {name for name, service in SERVICES.items() if "simulated" in service["profiles"]} == set(SERVICES) - {GUARD}
    for name in OWN:
        for needed, how in SERVICES[name].get("depends_on", {}).items():
            assert needed in OWN - {GUARD} or how["required"] is False


def test_a_worker_has_longer_to_stop_than_it_takes() -> None:
    from rowferry_worker.daemon import RELEASE_TIMEOUT
    from rowferry_worker.options import Options

    seconds = int(SERVICES["worker"]["stop_grace_period"].removesuffix("s"))
    assert seconds > (Options().grace + RELEASE_TIMEOUT).total_seconds()


def test_the_options_of_a_worker_reach_it_as_variables() -> None:
    from rowferry_cli.work.worker import command

    service = SERVICES["worker"]
    passed = {variable for variable, value in service["environment"].items() if value is None} - set(ALLOWED)
    told = {word.partition("=")[0] for word in service["command"]}
    assert passed == {option.envvar for option in command.options if option.opts[-1] not in told}
    assert "deploy" not in service, "one container has a process for each core"


@pytest.mark.parametrize("name", ["worker", "enqueue"])
def test_what_plans_may_ask_can_be_limited(name: str) -> None:
    assert {
        variable: SERVICES[name]["environment"].get(variable, "not passed") for variable in ALLOWED
    } == dict.fromkeys(ALLOWED)
    assert all(f"\n{variable}=" in (ROOT / "compose" / "own.env").read_text() for variable in ALLOWED)


def test_every_host_folder_that_is_mounted_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (ROOT / source).is_dir(), source
