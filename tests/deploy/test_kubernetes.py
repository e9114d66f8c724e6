"""deploy/kubernetes, held against what rowferry does and what compose.yaml says."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from support.docs.compose import ALLOWED
from support.docs.doc_pages import ROOT
from support.docs.kubernetes import FOLDER, Object, find_pods, list_containers, read

pytestmark = pytest.mark.texts

PODS = ("base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml")


def test_the_images_are_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    words = "\n".join(path.read_text() for path in FOLDER.rglob("*.yaml"))
    assert set(re.findall(r"image: (\S+)", words)) == {f"rowferry:{version}"}
    assert re.findall(r"newTag: (\S+) ", words) == [version]


@pytest.mark.parametrize("path", PODS)
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


@pytest.mark.parametrize("path", ["base/worker.yaml", "job/enqueue.yaml"])
def test_what_plans_may_ask_is_limited_by_the_overlay(path: str) -> None:
    settings = yaml.safe_load((FOLDER / "overlays/example/settings/kustomization.yaml").read_text())
    (limits,) = settings["configMapGenerator"]
    known = {literal.partition("=")[0] for literal in limits["literals"]}
    (pod,) = find_pods(read(path).values())
    for container in list_containers(pod):
        given = {
            each["name"]: each["valueFrom"]["configMapKeyRef"] for each in container["env"] if each["name"] in ALLOWED
        }
        assert set(given) == set(ALLOWED)
        assert {each["key"] for each in given.values()} == known
        assert all(each["name"] == limits["name"] and each["optional"] is True for each in given.values())


def read_files_of(container: Object) -> dict[str, str]:
    """Return the variables that name files."""
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    return {name: value for name, value in variables.items() if name.endswith("_FILE")}


@pytest.mark.parametrize("path", PODS)
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


@pytest.mark.parametrize("path", PODS)
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


@pytest.mark.parametrize("path", PODS)
def test_the_program_takes_what_a_pod_gives_it(path: str) -> None:
    from rowferry_cli import cli

    (pod,) = find_pods(read(path).values())
    for container in list_containers(pod):
        name, *arguments = container["args"]
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        command.make_context(name, arguments)


def test_a_pod_has_longer_to_stop_than_a_worker_takes_and_is_probed_where_it_answers() -> None:
    from rowferry_worker.daemon import RELEASE_TIMEOUT
    from rowferry_worker.options import Options

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
