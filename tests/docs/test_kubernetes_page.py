"""docs/kubernetes.md: its commands name what deploy/kubernetes has, and hand over what the pods read."""

import re
from typing import Any

import pytest
import yaml

from support.docs.doc_pages import ROOT
from support.docs.kubernetes import FOLDER, VERSIONS, find_pods, read

pytestmark = pytest.mark.texts

PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
COMMANDS = re.findall(r"^kubectl (?:.*\\\n)*.*$", PAGE, re.MULTILINE)
MADE_BY_COPYING = "deploy/kubernetes/overlays/own"


def find(pattern: str) -> set[str]:
    return {found for command in COMMANDS for found in re.findall(pattern, command)}


def test_every_manifest_that_is_applied_exists() -> None:
    assert f"cp -r deploy/kubernetes/overlays/example {MADE_BY_COPYING}\n" in PAGE
    applied = find(r"apply -[fk] (\S+)")
    assert len(applied) == 3
    for path in applied:
        there = ROOT / path.replace(MADE_BY_COPYING, "deploy/kubernetes/overlays/example")
        assert there.is_file() or (there / "kustomization.yaml").is_file(), path


def test_what_pods_mount_is_created_before() -> None:
    created = find(r"create (?:secret generic|configmap) (\S+)")
    pods = [pod for path in ("base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml") for pod in pods_of(path)]
    volumes = [volume for pod in pods for volume in pod["volumes"]]
    mounted = {volume.get("secret", {}).get("secretName") or volume["configMap"]["name"] for volume in volumes}
    assert created == mounted
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    (owner,) = find(r"--from-file=database_url=compose/own/(\S+)")
    assert owner in {secret["file"].rpartition("/")[2] for secret in compose["secrets"].values()}


def test_the_secret_of_the_workers_has_what_they_read_and_nothing_else() -> None:
    """Everything in compose/own would be the owner's URL and the passwords of Grafana as well."""
    (command,) = (command for command in COMMANDS if "secret generic rowferry " in command)
    (pod,) = pods_of("base/worker.yaml")
    (volume,) = pod["volumes"]
    keys = [item["key"] for item in volume["secret"]["items"]]
    assert re.findall(r"--from-file=(\S+)", command) == [f"compose/own/{key}" for key in keys]


def pods_of(path: str) -> list[dict[str, Any]]:
    return find_pods(read(path).values())


def test_every_object_that_is_named_exists() -> None:
    there = {
        f"{found['kind'].lower()}/{found['metadata']['name']}"
        for path in ("base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml")
        for found in read(path).values()
    }
    named = find(r"\b(?:deployment|job)/[\w-]+") | {f"deployment/{name}" for name in find(r"scale deployment (\S+)")}
    named |= {f"job/{name}" for name in re.findall(r"delete job ([\w-]+)", PAGE)}
    assert named
    assert named <= there
    assert find(r"-n (\S+)") == {
        yaml.safe_load((FOLDER / "overlays" / "example" / "namespace.yaml").read_text())["metadata"]["name"]
    }


def test_the_page_tells_which_versions_were_tested() -> None:
    assert f"Kubernetes {VERSIONS[0]} to {VERSIONS[-1]}:" in " ".join(PAGE.split())
