"""deploy/kubernetes: built by kustomize, held against the schemas of Kubernetes, and against what rowferry does."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import psycopg
import pytest
import yaml

from rowferry.db.grants import compose_grants
from support.docs.doc_pages import ROOT
from support.docs.kubernetes import FOLDER, VERSIONS, Object, find_pods, read
from support.entries.entry_table import EntryTable

KUSTOMIZE = ROOT / ".tools" / "bin" / "kustomize"
VALIDATE = ROOT / ".tools" / "kubernetes" / "bin" / "kubernetes-validate"
EXTENSIONS = {"PodMonitor", "ScaledObject", "TriggerAuthentication"}
"""Kinds of operators: Kubernetes itself has no schema of them."""
FILES = sorted(path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml")
BUILDS = ("base", "job", "overlays/example", "overlays/example/job")


def build(folder: Path) -> list[Object]:
    if not KUSTOMIZE.exists():
        pytest.skip("kustomize is not here: `make test` builds it where `go` is installed")
    ended = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True, text=True, timeout=200, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return list(yaml.safe_load_all(ended.stdout))


def list_containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", []), *pod["containers"]]


@pytest.fixture
def validate(tmp_path: Path) -> Callable[..., str]:
    """Return what asks the schemas of a version, strictly: it returns the complaints about these objects."""
    if not VALIDATE.exists():
        pytest.skip("the schemas of Kubernetes are not here: `make test` installs them")

    def ask(objects: Iterable[Object], version: str) -> str:
        path = tmp_path / "objects.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        command = [VALIDATE, "--strict", "--quiet", "--kubernetes-version", version, path]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        complaints = [line for line in (ended.stdout + ended.stderr).splitlines() if not is_of_an_operator(line)]
        assert ended.returncode == 0 or complaints
        return "\n".join(complaints)

    return ask


def is_of_an_operator(line: str) -> bool:
    return "WARN" in line and any(f"for kind {kind} with" in line for kind in EXTENSIONS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_kubernetes_takes_every_file(file: Path, version: str, validate: Callable[..., str]) -> None:
    assert validate(yaml.safe_load_all(file.read_text()), version) == ""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", BUILDS)
def test_kubernetes_takes_what_kustomize_builds(folder: str, version: str, validate: Callable[..., str]) -> None:
    assert validate(build(FOLDER / folder), version) == ""


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda found: found["spec"].update(replica=2), "replica"),
        (lambda found: found["spec"].update(replicas="two"), "'two' is not of type 'integer'"),
        (lambda found: found["spec"].pop("selector"), "'selector' is a required property"),
        (lambda found: found["spec"]["template"]["spec"]["containers"][0].update(livenessprobe={}), "livenessprobe"),
        (lambda found: found.update(kind="Deploymnet"), "Couldn't find schema for kind Deploymnet"),
    ],
)
def test_a_broken_manifest_is_refused(
    spoil: Callable[[Object], object], complaint: str, validate: Callable[..., str]
) -> None:
    found = read("base/worker.yaml")["Deployment"]
    assert validate([found], VERSIONS[-1]) == ""
    spoil(found)
    assert complaint in validate([found], VERSIONS[-1])


def test_the_overlay_needs_no_operator() -> None:
    """Without its operator, kubectl would refuse an object."""
    assert not EXTENSIONS & {found["kind"] for found in build(FOLDER / "overlays" / "example")}


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


def test_the_overlay_reaches_every_object(tmp_path: Path) -> None:
    example = copy_with("pod-monitor", tmp_path)
    objects = [*build(example), *build(example / "job")]
    namespace = yaml.safe_load((FOLDER / "overlays" / "example" / "namespace.yaml").read_text())["metadata"]["name"]
    assert {found["metadata"]["namespace"] for found in objects} == {namespace}
    assert {found["metadata"]["labels"]["app.kubernetes.io/part-of"] for found in objects if is_own(found)}
    images = {container["image"] for pod in find_pods(objects) for container in list_containers(pod)}
    assert len(images) == 1
    (image,) = images
    assert image.startswith("registry.example.com/rowferry:")
    assert {found["kind"] for found in objects} == {"Deployment", "Service", "PodMonitor", "Job"}


def is_own(found: Object) -> bool:
    return found["kind"] not in EXTENSIONS


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


def test_the_images_are_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    words = "\n".join(path.read_text() for path in FOLDER.rglob("*.yaml"))
    assert set(re.findall(r"image: (\S+)", words)) == {f"rowferry:{version}"}
    assert re.findall(r"newTag: (\S+) ", words) == [version]


@pytest.mark.parametrize("path", ["base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml"])
def test_every_pod_fits_the_restricted_profile(path: str) -> None:
    """Kubernetes' Pod Security Standards, the profile `restricted`, and what the image allows beyond it."""
    (pod,) = find_pods(read(path).values())
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert f"USER {pod['securityContext']['runAsUser']}:" in (ROOT / "worker" / "Dockerfile").read_text()
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert pod["automountServiceAccountToken"] is False
    assert all({"secret", "configMap"} & set(volume) for volume in pod["volumes"])
    for container in list_containers(pod):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "procMount", "runAsUser"} & set(context)
        assert {"cpu", "memory"} == set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
        assert not any("hostPort" in port for port in container.get("ports", []))


@pytest.mark.parametrize(("path", "service"), [("base/worker.yaml", "worker"), ("base/exporter.yaml", "exporter")])
def test_a_pod_runs_the_image_as_compose_does(path: str, service: str) -> None:
    (pod,) = find_pods(read(path).values())
    (container,) = pod["containers"]
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"][service]
    assert {word for word in compose["command"] if "-port" not in word} <= set(container["args"])
    assert {Path(value).name for value in read_files_of(container).values()} == set(compose["secrets"])


def read_files_of(container: Object) -> dict[str, str]:
    """Return the variables that name files."""
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    return {name: value for name, value in variables.items() if name.endswith("_FILE")}


@pytest.mark.parametrize("path", ["base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml"])
def test_no_secret_is_in_an_environment_and_each_file_is_mounted(path: str) -> None:
    (pod,) = find_pods(read(path).values())
    for container in list_containers(pod):
        assert not any("secretKeyRef" in str(variable) for variable in container["env"])
        mounted = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        files = list(read_files_of(container).values())
        files += [variable["value"] for variable in container["env"] if variable["name"] == "ROWFERRY_PLAN"]
        assert {str(Path(file).parent) for file in files} == set(mounted)
        assert all(mount["readOnly"] is True for mount in mounted.values())
        assert {mount["name"] for mount in mounted.values()} <= {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("path", ["base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml"])
def test_a_pod_holds_no_secret_that_it_does_not_read(path: str) -> None:
    (pod,) = find_pods(read(path).values())
    containers = list_containers(pod)
    folders = {mount["name"]: mount["mountPath"] for found in containers for mount in found["volumeMounts"]}
    given = {
        f"{folders[volume['name']]}/{item['path']}"
        for volume in pod["volumes"]
        if "secret" in volume
        for item in volume["secret"].get("items", [{"path": "everything"}])
    }
    assert given == {file for container in containers for file in read_files_of(container).values()}


@pytest.mark.parametrize("path", ["base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml"])
def test_the_program_takes_what_a_pod_gives_it(path: str) -> None:
    from rowferry_cli import cli

    (pod,) = find_pods(read(path).values())
    for container in list_containers(pod):
        name, *arguments = container["args"]
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        command.make_context(name, arguments)


def test_a_pod_has_longer_to_stop_than_a_worker_takes_and_is_probed_where_it_answers() -> None:
    from rowferry_worker.daemon import RELEASE_TIMEOUT, Options

    pod = read("base/worker.yaml")["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > (Options().grace + RELEASE_TIMEOUT).total_seconds()
    for path, probes in (("base/worker.yaml", ("startup", "liveness")), ("base/exporter.yaml", ("liveness",))):
        (container,) = read(path)["Deployment"]["spec"]["template"]["spec"]["containers"]
        (port,) = container["ports"]
        assert any(word.endswith(f"port={port['containerPort']}") for word in container["args"])
        for probe in probes:
            assert container[f"{probe}Probe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}


def test_an_exporter_is_asked_for_longer_than_it_takes_to_answer() -> None:
    from rowferry_exporter.collector import SCRAPE_TIMEOUT

    (container,) = read("base/exporter.yaml")["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["timeoutSeconds"] > SCRAPE_TIMEOUT.total_seconds()


def test_selectors_find_their_pods() -> None:
    worker, exporter = read("base/worker.yaml"), read("base/exporter.yaml")
    monitors = list(yaml.safe_load_all((FOLDER / "components/pod-monitor/pod-monitor.yaml").read_text()))
    labels = {
        found["metadata"]["name"]: found["spec"]["template"]["metadata"]["labels"]
        for found in (worker["Deployment"], exporter["Deployment"])
    }
    for found in (worker["Deployment"], exporter["Deployment"], *monitors):
        assert found["spec"]["selector"]["matchLabels"] == labels[found["metadata"]["name"]]
    assert exporter["Service"]["spec"]["selector"] == labels["rowferry-exporter"]
    scraped = (ROOT / "dashboards" / "prometheus" / "prometheus.yml").read_text()
    for monitor in monitors:
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        (job,) = endpoint["relabelings"]
        assert f"job_name: {job['replacement']}\n" in scraped
        assert endpoint["honorLabels"] is True


def count_work(table: EntryTable) -> int:
    """Ask what KEDA asks, as a worker's own role."""
    (trigger,) = read("components/keda/scaler.yaml")["ScaledObject"]["spec"]["triggers"]
    with psycopg.connect(table.dsn) as connection:
        connection.execute("create role scaler")
        connection.execute(compose_grants("scaler", ["worker"], None))
        connection.execute("set role scaler")
        (row,) = connection.execute(trigger["metadata"]["query"]).fetchall()
        connection.rollback()
    return row[0]


def test_keda_counts_the_batches_that_may_be_worked_on_now_and_no_others(table: EntryTable) -> None:
    assert count_work(table) == 0
    table.add_legacy(range(1, 31))
    table.enqueue(batch_size=10)
    assert count_work(table) == 3
    table.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour' where id = 1")
    assert count_work(table) == 2
    table.execute("update rowferry.batch_queue set queue_name = 'verify' where id = 2")
    assert count_work(table) == 1, "these workers do not serve that queue"
    table.execute("update rowferry.migration set paused_at = now()")
    assert count_work(table) == 0
