"""deploy/kubernetes, held against what rowferry does, what compose.yaml says, and what docs/workers.md applies."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rowferry_exporter.collector import SCRAPE_TIMEOUT
from rowferry_worker.daemon import RELEASE_TIMEOUT
from rowferry_worker.options import Options
from support.docs.command_line import parse_command
from support.docs.deployed import ALLOWED, FOLDER, SERVICES, Object, find_pods, list_containers, read
from support.docs.doc_pages import ROOT

pytestmark = pytest.mark.texts

PODS = {
    path: find_pods(read(path).values())[0] for path in ("base/worker.yaml", "base/exporter.yaml", "job/enqueue.yaml")
}
WORKER, EXPORTER, ENQUEUE = PODS
MONITORS = list(yaml.safe_load_all((FOLDER / "components/pod-monitor/pod-monitor.yaml").read_text()))
PAGE = (ROOT / "docs" / "workers.md").read_text()


def list_all_containers() -> Iterator[Object]:
    for pod in PODS.values():
        yield from list_containers(pod)


def read_files_of(container: Object) -> set[str]:
    """Return the files that variables name."""
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    return {value for name, value in variables.items() if name.endswith("_FILE")}


def test_every_pod_fits_the_restricted_profile() -> None:
    """Kubernetes' Pod Security Standards, the profile `restricted`, and what the image allows beyond it."""
    for pod in PODS.values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert f"USER {pod['securityContext']['runAsUser']}:" in (ROOT / "worker" / "Dockerfile").read_text()
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert pod["automountServiceAccountToken"] is False
        assert all({"secret", "configMap"} & set(volume) for volume in pod["volumes"])
    for container in list_all_containers():
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "procMount", "runAsUser"} & set(context)
        assert {"cpu", "memory"} == set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
        assert not any("hostPort" in port for port in container.get("ports", []))


@pytest.mark.parametrize(("path", "service"), [(WORKER, "worker"), (EXPORTER, "exporter")])
def test_a_pod_runs_the_image_as_compose_does(path: str, service: str) -> None:
    (container,) = PODS[path]["containers"]
    assert {word for word in SERVICES[service]["command"] if "-port" not in word} <= set(container["args"])
    assert {Path(value).name for value in read_files_of(container)} == set(SERVICES[service]["secrets"])


def test_the_program_takes_what_a_pod_gives_it() -> None:
    for container in list_all_containers():
        parse_command(container["args"])


def test_what_plans_may_ask_is_limited_by_the_overlay() -> None:
    settings = yaml.safe_load((FOLDER / "overlays/example/settings/kustomization.yaml").read_text())
    (limits,) = settings["configMapGenerator"]
    known = {literal.partition("=")[0] for literal in limits["literals"]}
    for container in [*list_containers(PODS[WORKER]), *list_containers(PODS[ENQUEUE])]:
        given = {
            each["name"]: each["valueFrom"]["configMapKeyRef"] for each in container["env"] if each["name"] in ALLOWED
        }
        assert set(given) == set(ALLOWED)
        assert {each["key"] for each in given.values()} == known
        assert all(each["name"] == limits["name"] and each["optional"] is True for each in given.values())


@pytest.mark.parametrize("path", PODS)
def test_no_secret_is_in_an_environment_and_a_pod_mounts_what_it_reads_and_no_more(path: str) -> None:
    containers = list_containers(PODS[path])
    for container in containers:
        assert not any("secretKeyRef" in str(variable) for variable in container["env"])
        mounted = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        files = read_files_of(container)
        files |= {variable["value"] for variable in container["env"] if variable["name"] == "ROWFERRY_PLAN"}
        assert {str(Path(file).parent) for file in files} == set(mounted)
        assert all(mount["readOnly"] is True for mount in mounted.values())
        assert {mount["name"] for mount in mounted.values()} <= {volume["name"] for volume in PODS[path]["volumes"]}
    folders = {mount["name"]: mount["mountPath"] for found in containers for mount in found["volumeMounts"]}
    given = {
        f"{folders[volume['name']]}/{item['path']}"
        for volume in PODS[path]["volumes"]
        if "secret" in volume
        for item in volume["secret"].get("items", [{"path": "everything"}])
    }
    assert given == set().union(*map(read_files_of, containers))


def test_a_pod_has_longer_to_stop_than_a_worker_takes_and_is_probed_where_it_answers() -> None:
    assert PODS[WORKER]["terminationGracePeriodSeconds"] > (Options().grace + RELEASE_TIMEOUT).total_seconds()
    for path, probes in ((WORKER, ("startup", "liveness")), (EXPORTER, ("liveness",))):
        (container,) = PODS[path]["containers"]
        (port,) = container["ports"]
        assert any(word.endswith(f"port={port['containerPort']}") for word in container["args"])
        for probe in probes:
            assert container[f"{probe}Probe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}
    (exporter,) = PODS[EXPORTER]["containers"]
    assert exporter["readinessProbe"]["timeoutSeconds"] > SCRAPE_TIMEOUT.total_seconds()


def test_selectors_find_their_pods() -> None:
    deployments = [read(path)["Deployment"] for path in (WORKER, EXPORTER)]
    labels = {found["metadata"]["name"]: found["spec"]["template"]["metadata"]["labels"] for found in deployments}
    for found in (*deployments, *MONITORS):
        assert found["spec"]["selector"]["matchLabels"] == labels[found["metadata"]["name"]]
    assert read(EXPORTER)["Service"]["spec"]["selector"] == labels["rowferry-exporter"]
    scraped = (ROOT / "dashboards" / "prometheus" / "prometheus.yml").read_text()
    for monitor in MONITORS:
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        (job,) = endpoint["relabelings"]
        assert f"job_name: {job['replacement']}\n" in scraped
        assert endpoint["honorLabels"] is True


# The commands of the page


def find(pattern: str) -> set[str]:
    commands = re.findall(r"^kubectl (?:.*\\\n)*.*$", PAGE, re.MULTILINE)
    return {found for command in commands for found in re.findall(pattern, command)}


def test_every_manifest_and_object_that_the_page_names_exists() -> None:
    made = "deploy/kubernetes/overlays/own"
    assert f"cp -r deploy/kubernetes/overlays/example {made}\n" in PAGE
    applied = [ROOT / path.replace("/own", "/example") for path in find(r"apply -[fk] (\S+)")]
    assert len(applied) == 3
    assert all(path.is_file() or (path / "kustomization.yaml").is_file() for path in applied)
    there = {f"{found['kind'].lower()}/{found['metadata']['name']}" for path in PODS for found in read(path).values()}
    named = find(r"\b(?:deployment|job)/[\w-]+") | {f"deployment/{name}" for name in find(r"scale deployment (\S+)")}
    assert named | {f"job/{name}" for name in re.findall(r"delete job ([\w-]+)", PAGE)} <= there
    assert len(named) > 1
    namespace = yaml.safe_load((FOLDER / "overlays" / "example" / "namespace.yaml").read_text())["metadata"]["name"]
    assert find(r"-n (\S+)") == {namespace}


def test_the_page_creates_what_pods_mount_and_gives_the_workers_nothing_else() -> None:
    """Everything in compose/own would be the owner's URL and the passwords of Grafana as well."""
    volumes = [volume for pod in PODS.values() for volume in pod["volumes"]]
    mounted = {volume.get("secret", {}).get("secretName") or volume["configMap"]["name"] for volume in volumes}
    assert find(r"create (?:secret generic|configmap) (\S+)") == mounted
    (command,) = re.findall(r"^kubectl .*secret generic rowferry (?:.*\\\n)*.*$", PAGE, re.MULTILINE)
    (volume,) = PODS[WORKER]["volumes"]
    keys = [item["key"] for item in volume["secret"]["items"]]
    assert re.findall(r"--from-file=(\S+)", command) == [f"compose/own/{key}" for key in keys]
