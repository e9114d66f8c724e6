"""worker/cloud-init.yaml and worker/kubernetes.yaml: read as their readers read them, their scripts and queries run."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from entry_table import EntryTable
from rowferry.db.grants import compose_grants

TOP = Path(__file__).parents[1]
CLOUD_INIT = TOP / "worker" / "cloud-init.yaml"
KUBERNETES = TOP / "worker" / "kubernetes.yaml"
UNIT = "rowferry-worker.service"


def read_files() -> dict[str, dict[str, str]]:
    return {file["path"]: file for file in yaml.safe_load(CLOUD_INIT.read_text())["write_files"]}


def read_objects() -> dict[str, dict[str, Any]]:
    return {found["kind"]: found for found in yaml.safe_load_all(KUBERNETES.read_text())}


def test_cloud_init_takes_the_user_data() -> None:
    if shutil.which("cloud-init") is None:
        pytest.skip("cloud-init is not installed here")
    command = ["cloud-init", "schema", "--config-file", CLOUD_INIT]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_user_data_begin_with_the_line_that_makes_them_a_cloud_config() -> None:
    assert CLOUD_INIT.read_text().startswith("#cloud-config\n")


def test_every_credential_of_the_unit_is_written_readable_by_root_alone() -> None:
    wanted = re.findall(r"^LoadCredential=\w+:(.*)$", (TOP / "worker" / UNIT).read_text(), re.MULTILINE)
    files = read_files()
    assert wanted
    assert all(files[path]["permissions"] == "0600" for path in wanted)
    assert "/etc/rowferry/worker.env" in files


RECORD = """#!/bin/sh
echo "{name} $*" >>"$RECORD"
{more}
"""
CLONE = """for folder; do :; done
mkdir -p "$folder/worker"; echo unit >"$folder/worker/rowferry-worker.service"
"""
VENV = """mkdir -p "$3/bin"
cp "$(dirname "$0")/pip" "$3/bin/pip"
"""


@pytest.fixture
def recorded(tmp_path: Path) -> dict[str, str]:
    """An environment in which git, pip, python3 and systemctl only say what they were asked for."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, more in {"git": CLONE, "pip": "", "python3": VENV, "systemctl": ""}.items():
        path = bin_folder / name
        path.write_text(RECORD.format(name=name, more=more))
        path.chmod(0o755)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "source").write_text(read_files()["/etc/rowferry/source"]["content"])
    (tmp_path / "units").mkdir()
    return {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "RECORD": str(tmp_path / "record"),
        "ETC": str(tmp_path / "etc"),
        "PREFIX": str(tmp_path / "rowferry"),
        "UNITS": str(tmp_path / "units"),
    }


def test_the_droplet_installs_the_revision_with_its_lock_file_and_starts_one_worker(
    recorded: dict[str, str], tmp_path: Path
) -> None:
    script = read_files()["/usr/local/sbin/install-rowferry"]["content"]
    for _ in range(2):  # the second time is an update
        subprocess.run(["sh", "-c", script], env=recorded, check=True, timeout=200)
    asked = (tmp_path / "record").read_text().replace(str(tmp_path), "")
    assert "git clone --quiet --depth 1 --branch v0.1.0 https://example.com/rowferry.git /rowferry/source" in asked
    assert "--require-hashes --requirement /rowferry/source/requirements/worker.txt" in asked
    assert [line for line in asked.splitlines() if line.startswith("systemctl")] == 2 * [
        "systemctl daemon-reload",
        "systemctl enable rowferry-worker",
        "systemctl restart rowferry-worker",
    ]
    assert (tmp_path / "units" / UNIT).read_text() == "unit\n"


def test_a_pod_runs_the_image_as_compose_does() -> None:
    pod = read_objects()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    worker = yaml.safe_load((TOP / "compose.yaml").read_text())["services"]["worker"]
    assert set(worker["command"]) <= set(container["args"])
    named = {variable["name"]: Path(variable["value"]).name for variable in container["env"]}
    assert set(named.values()) == set(worker["secrets"])
    assert all(variable.endswith("_FILE") for variable in named)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert f"USER {pod['securityContext']['runAsUser']}:" in (TOP / "worker" / "Dockerfile").read_text()


def test_a_pod_has_longer_to_stop_than_a_worker_takes_and_is_probed_where_it_answers() -> None:
    from rowferry_worker.daemon import RELEASE_TIMEOUT, Options

    pod = read_objects()["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > (Options().grace + RELEASE_TIMEOUT).total_seconds()
    (container,) = pod["containers"]
    (port,) = container["ports"]
    assert f"--metrics-port={port['containerPort']}" in container["args"]
    for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}


def test_the_objects_name_each_other() -> None:
    objects = read_objects()
    scaled = objects["ScaledObject"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == objects["Deployment"]["metadata"]["name"]
    (trigger,) = scaled["triggers"]
    assert trigger["authenticationRef"]["name"] == objects["TriggerAuthentication"]["metadata"]["name"]
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert objects["Deployment"]["spec"]["selector"]["matchLabels"].items() <= labels.items()


def count_work(table: EntryTable) -> int:
    """Ask what KEDA asks, as a worker's own role."""
    (trigger,) = read_objects()["ScaledObject"]["spec"]["triggers"]
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
