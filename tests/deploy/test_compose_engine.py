"""Docker Compose takes compose.yaml, and the proof of it takes stand-ins for images that cannot be had."""

import os
import subprocess
from collections.abc import Sequence

import pytest

from support.checkout import ROOT
from support.docs.compose import OWN, SERVICES

COMPOSE = ROOT / ".tools" / "bin" / "docker-compose"
IMAGES = "rowferry:0.1.0\npostgres:17\nprom/prometheus:v3\n"


@pytest.fixture
def make_engine(monkeypatch: pytest.MonkeyPatch):
    """Return what makes an engine that has some images, and pulls others from a registry if there is one."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "deploy" / "compose"))
    from engine import Engine  # pyright: ignore[reportMissingImports]

    def make(has: Sequence[str], pulls: Sequence[str]) -> Engine:
        def docker(_self: Engine, verb: str, *arguments: object, **_more: object) -> str:
            image = arguments[1]
            if image not in (has if verb == "image" else pulls):
                raise RuntimeError(f"docker {verb}: no {image}")
            return "sha256:0"

        monkeypatch.setattr(Engine, "docker", docker)
        monkeypatch.setattr(Engine, "compose", lambda *_arguments, **_more: IMAGES)
        return Engine("unix:///nowhere", is_own=False)

    return make


def test_an_engine_without_a_registry_takes_the_stand_ins(make_engine) -> None:
    assert not make_engine(["postgres:17"], []).can_pull()


def test_an_engine_that_has_or_gets_all_images_takes_those(make_engine) -> None:
    assert make_engine(["postgres:17"], ["prom/prometheus:v3"]).can_pull()


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
