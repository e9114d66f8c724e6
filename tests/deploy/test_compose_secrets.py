"""With servers of one's own, compose.yaml starts nothing on what everybody knows, and shows nothing to everybody."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from support.checkout import ROOT
from support.docs.compose import GUARD, OWN, SERVICES

pytestmark = pytest.mark.texts

SCRIPT = ROOT / "compose" / "refuse_demo_secrets.py"
DEMO = ROOT / "compose" / "secrets"
HANDED = sorted({Path(secret).name for name in OWN for secret in SERVICES[name].get("secrets", [])})


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Secrets of one's own, in the place of all that are handed to services."""
    for name in HANDED:
        (tmp_path / name).write_text(f"my own {name}\n")
    return tmp_path


def start(own: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run what the service runs, on this folder in the place of /run/secrets."""
    _, _, demo = SERVICES[GUARD]["entrypoint"]
    assert f"./compose/secrets:{demo}:ro" in SERVICES[GUARD]["volumes"]
    files = [str(own / Path(word).name) for word in SERVICES[GUARD]["command"]]
    command = [sys.executable, SCRIPT, DEMO, *files]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_secrets_of_ones_own_are_taken_and_so_is_an_empty_key(own: Path) -> None:
    (own / "legacy_access_key_id").write_text("\n")
    ended = start(own)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("name", HANDED)
def test_each_secret_of_the_demo_is_refused_by_name(own: Path, name: str) -> None:
    shutil.copy(DEMO / name, own / name)
    ended = start(own)
    words = f"The secret {name} is that of the demo, which everybody knows: put your own into its file.\n"
    assert (ended.returncode, ended.stderr) == (2, words)


def test_a_secret_that_the_containers_may_not_read_is_named(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, which runs tests too, every file could be read."""
    list_faults = runpy.run_path(str(SCRIPT))["list_faults"]
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=PermissionError))
    (fault,) = list_faults(DEMO, [own / "database_url"], "false")
    assert fault.startswith("The secret database_url cannot be read by the containers: give it mode 640")


def test_everything_waits_for_that(subtests: pytest.Subtests) -> None:
    for name in OWN - {GUARD, "prometheus"}:
        with subtests.test(name):
            assert SERVICES[name]["depends_on"][GUARD] == {
                "condition": "service_completed_successfully",
                "required": False,
            }


def test_grafana_is_viewed_without_a_password_on_simulated_data_alone(own: Path) -> None:
    value = SERVICES["grafana"]["environment"]["GF_AUTH_ANONYMOUS_ENABLED"]
    assert value == SERVICES[GUARD]["environment"]["ROWFERRY_GRAFANA_ANONYMOUS"]
    assert value == "${ROWFERRY_GRAFANA_ANONYMOUS:-false}"
    assert "\nROWFERRY_GRAFANA_ANONYMOUS=true\n" in (ROOT / ".env").read_text()
    assert "ROWFERRY_GRAFANA_ANONYMOUS" not in (ROOT / "compose" / "own.env").read_text()
    ended = start(own, ROWFERRY_GRAFANA_ANONYMOUS="true")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)


def test_secrets_are_read_by_a_group_and_need_no_right_for_others(subtests: pytest.Subtests) -> None:
    for name in OWN:
        with subtests.test(name):
            assert SERVICES[name]["group_add"] == ["${ROWFERRY_SECRETS_GROUP:-10001}"]
    assert re.search(r"^ROWFERRY_SECRETS_GROUP=\d+$", (ROOT / "compose" / "own.env").read_text(), re.MULTILINE)
    assert "chmod 640 compose/own/*" in (ROOT / "docs" / "several-hosts.md").read_text()


def test_no_container_writes_a_core(subtests: pytest.Subtests) -> None:
    for name, service in SERVICES.items():
        with subtests.test(name):
            assert service["ulimits"] == {"core": 0}
