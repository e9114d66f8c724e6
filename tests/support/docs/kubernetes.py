"""deploy/kubernetes as kustomize builds it."""

from collections.abc import Iterable
from typing import Any

import yaml

from support.docs.doc_pages import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"


VERSIONS = ("1.29", "1.31", "1.33", "1.35", "1.36", "1.37")


Object = dict[str, Any]


def read(path: str) -> Object:
    """Return the objects of a file, by kind."""
    return {found["kind"]: found for found in yaml.safe_load_all((FOLDER / path).read_text())}


def find_pods(objects: Iterable[Object]) -> list[Object]:
    return [found["spec"]["template"]["spec"] for found in objects if found["kind"] in {"Deployment", "Job"}]


def list_containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", []), *pod["containers"]]
