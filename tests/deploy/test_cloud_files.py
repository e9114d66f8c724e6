"""worker/cloud-init.yaml: read as cloud-init reads it, its script run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.checkout import ROOT
from support.docs.systemd import CLOUD_INIT, read_cloud_files

UNIT = "rowferry-worker.service"


def read_files() -> dict[str, dict[str, str]]:
    return {file["path"]: file for file in read_cloud_files()}


def test_cloud_init_takes_the_user_data() -> None:
    if shutil.which("cloud-init") is None:
        pytest.skip("cloud-init is not installed here")
    command = ["cloud-init", "schema", "--config-file", CLOUD_INIT]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_user_data_begin_with_the_line_that_makes_them_a_cloud_config() -> None:
    assert CLOUD_INIT.read_text().startswith("#cloud-config\n")


def test_every_credential_of_the_unit_is_written_readable_by_root_alone() -> None:
    wanted = re.findall(r"^LoadCredential=\w+:(.*)$", (ROOT / "worker" / UNIT).read_text(), re.MULTILINE)
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
