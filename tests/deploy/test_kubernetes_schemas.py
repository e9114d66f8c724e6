"""deploy/kubernetes: built by kustomize, held against the schemas of Kubernetes, and counted by KEDA's query."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import psycopg
import pytest
import yaml
from psycopg import sql

from rowferry_cli.setup.grants import compose_grants
from support.docs.deployed import FOLDER, VERSIONS, Object, find_pods, list_containers, read
from support.docs.doc_pages import ROOT
from support.entries.entry_table import EntryTable
from support.postgres.roles import new_role

KUSTOMIZE = ROOT / ".tools" / "bin" / "kustomize"
VALIDATE = ROOT / ".tools" / "kubernetes" / "bin" / "kubernetes-validate"
EXTENSIONS = {"PodMonitor", "ScaledObject", "TriggerAuthentication"}
"""Kinds of operators: Kubernetes itself has no schema of them."""
FILES = sorted(path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml")
BUILDS = ("base", "job", "overlays/example", "overlays/example/job")


def build(folder: Path) -> list[Object]:
    if not KUSTOMIZE.exists():
        pytest.skip("kustomize is not here: `make servers` builds it where `go` is installed")
    ended = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True, text=True, timeout=200, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return list(yaml.safe_load_all(ended.stdout))


def validate(paths: Iterable[Path], version: str) -> str:
    """Return the complaints of a version's schemas about files, which name them; without those about operators."""
    if not VALIDATE.exists():
        pytest.skip("the schemas of Kubernetes are not here: `make servers` installs them")
    command = [VALIDATE, "--strict", "--quiet", "--kubernetes-version", version, *paths]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    foreign = tuple(f"for kind {kind} with" for kind in EXTENSIONS)
    lines = (ended.stdout + ended.stderr).splitlines()
    complaints = [line for line in lines if "WARN" not in line or not any(kind in line for kind in foreign)]
    assert ended.returncode == 0 or complaints
    return "\n".join(complaints)


def write(path: Path, objects: Iterable[Object]) -> Path:
    path.write_text(yaml.safe_dump_all(objects))
    return path


def test_kubernetes_takes_what_kustomize_builds(tmp_path: Path, subtests: pytest.Subtests) -> None:
    built = [write(tmp_path / f"{name.replace('/', '-')}.yaml", build(FOLDER / name)) for name in BUILDS]
    for version in VERSIONS:
        with subtests.test(version):
            assert validate(built, version) == ""
    assert f"Kubernetes {VERSIONS[0]} to {VERSIONS[-1]}:" in " ".join((ROOT / "docs/workers.md").read_text().split())


def copy_with(component: str, folder: Path) -> Path:
    """Return a copy of the example that takes a component in."""
    copy = folder / "kubernetes"
    shutil.copytree(FOLDER, copy)
    example = copy / "overlays" / "example" / "kustomization.yaml"
    words = example.read_text()
    line = f"  # - ../../components/{component} #"
    assert line in words
    example.write_text(words.replace(line, line.replace("# -", "-", 1)))
    return example.parent


def test_the_overlay_reaches_every_object_and_needs_no_operator(tmp_path: Path) -> None:
    """Without its operator, kubectl would refuse an object."""
    assert not EXTENSIONS & {found["kind"] for found in build(FOLDER / "overlays" / "example")}
    example = copy_with("pod-monitor", tmp_path)
    objects = [*build(example), *build(example / "job")]
    namespace = yaml.safe_load((FOLDER / "overlays" / "example" / "namespace.yaml").read_text())["metadata"]["name"]
    assert {found["metadata"]["namespace"] for found in objects} == {namespace}
    own = [found for found in objects if found["kind"] not in EXTENSIONS]
    assert all("app.kubernetes.io/part-of" in found["metadata"]["labels"] for found in own)
    (image,) = {container["image"] for pod in find_pods(objects) for container in list_containers(pod)}
    assert image.startswith("registry.example.com/rowferry:")
    assert {found["kind"] for found in objects} == {"Deployment", "Service", "PodMonitor", "Job", "ConfigMap"}
    limits = {found["metadata"]["name"] for found in objects if found["kind"] == "ConfigMap"}
    assert limits == set(re.findall(r"'name': '(rowferry-allowed[^']*)'", str(find_pods(objects))))


def test_keda_sets_the_number_of_workers_alone(tmp_path: Path) -> None:
    example = copy_with("keda", tmp_path)
    settings = example / "kustomization.yaml"
    settings.write_text(settings.read_text().partition("replicas:")[0])
    objects = {(found["kind"], found["metadata"]["name"]): found for found in build(example)}
    assert "replicas" not in objects["Deployment", "rowferry-worker"]["spec"]
    scaled = objects["ScaledObject", "rowferry-worker"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == "rowferry-worker"
    (trigger,) = scaled["triggers"]
    assert ("TriggerAuthentication", trigger["authenticationRef"]["name"]) in objects


def count_work(table: EntryTable) -> int:
    """Ask what KEDA asks, as a worker's own role."""
    (trigger,) = read("components/keda/scaler.yaml")["ScaledObject"]["spec"]["triggers"]
    with new_role(table.dsn) as role, psycopg.connect(table.dsn) as connection:
        connection.execute(compose_grants(role, ["worker"], None))
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        (row,) = connection.execute(trigger["metadata"]["query"]).fetchall()
        connection.rollback()
    return row[0]


def test_keda_counts_the_batches_that_may_be_worked_on_now_and_no_others(table: EntryTable) -> None:
    assert count_work(table) == 0
    table.add_legacy(range(1, 31)).enqueue(batch_size=10)
    assert count_work(table) == 3
    table.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour' where id = 1")
    assert count_work(table) == 2
    table.execute("update rowferry.batch_queue set queue_name = 'verify' where id = 2")
    assert count_work(table) == 1, "these workers do not serve that queue"
    table.execute("update rowferry.migration set paused_at = now()")
    assert count_work(table) == 0
