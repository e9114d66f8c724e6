"""The proof of compose.yaml takes stand-in images wherever the real ones cannot be had."""

from collections.abc import Sequence

import pytest

from support.docs.doc_pages import ROOT

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
