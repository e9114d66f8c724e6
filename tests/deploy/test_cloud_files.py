"""worker/cloud-init.yaml: read as cloud-init reads it, its script run."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from support.checkout import ROOT
from support.docs.deployed import CLOUD_INIT, read_cloud_files

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
COMMIT = "c0ffee" + "1" * 34
CLONE = f"""case $* in *rev-parse*) echo {COMMIT}; exit; esac
for folder; do :; done
mkdir -p "$folder/worker"; echo unit >"$folder/worker/rowferry-worker.service"
"""
VENV = """mkdir -p "$3/bin"
cp "$(dirname "$0")/pip" "$3/bin/pip"
printf '#!/bin/sh\\necho "%s/package"\\n' "$3" >"$3/bin/python"; chmod 755 "$3/bin/python"
mkdir -p "$3/package"; echo unit >"$3/package/rowferry-worker.service"
"""
ADDRESS = 'echo "3: $5    inet 10.0.0.11/16 brd 10.0.255.255 scope global $5"'


@pytest.fixture
def recorded(tmp_path: Path) -> dict[str, str]:
    """An environment in which git, pip, python3, systemctl and ip only say what they were asked for."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, more in {"git": CLONE, "pip": "", "python3": VENV, "systemctl": "", "ip": ADDRESS}.items():
        path = bin_folder / name
        path.write_text(RECORD.format(name=name, more=more))
        path.chmod(0o755)
    (tmp_path / "etc").mkdir()
    (tmp_path / "units").mkdir()
    return {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "RECORD": str(tmp_path / "record"),
        "ETC": str(tmp_path / "etc"),
        "PREFIX": str(tmp_path / "rowferry"),
        "UNITS": str(tmp_path / "units"),
    }


def install(recorded: dict[str, str], **source: str) -> subprocess.CompletedProcess[str]:
    """Run the script with these values in /etc/rowferry/source."""
    path = Path(recorded["ETC"]) / "source"
    words = read_files()["/etc/rowferry/source"]["content"]
    for name, value in source.items():
        words, count = re.subn(rf"^{name}=.*$", f"{name}={value}", words, flags=re.MULTILINE)
        assert count == 1, name
    path.write_text(words)
    script = read_files()["/usr/local/sbin/install-rowferry"]["content"]
    return subprocess.run(["sh", "-c", script], env=recorded, capture_output=True, text=True, timeout=200, check=False)


def read_record(recorded: dict[str, str], tmp_path: Path) -> str:
    return Path(recorded["RECORD"]).read_text().replace(str(tmp_path), "")


def test_the_droplet_installs_the_revision_with_its_lock_file_and_starts_one_worker(
    recorded: dict[str, str], tmp_path: Path
) -> None:
    for _ in range(2):  # the second time is an update
        assert install(recorded, COMMIT=COMMIT).returncode == 0
    asked = read_record(recorded, tmp_path)
    assert "git clone --quiet --depth 1 --branch v0.1.0 https://example.com/rowferry.git /rowferry/source" in asked
    assert "--require-hashes --requirement /rowferry/source/requirements/worker.txt" in asked
    assert [line for line in asked.splitlines() if line.startswith("systemctl")] == 2 * [
        "systemctl daemon-reload",
        "systemctl enable rowferry-worker",
        "systemctl restart rowferry-worker",
    ]
    assert (tmp_path / "units" / UNIT).read_text() == "unit\n"


@pytest.mark.parametrize("commit", ["", "0" * 40], ids=["not named", "moved"])
def test_a_tag_that_is_not_the_named_commit_is_not_installed(
    recorded: dict[str, str], tmp_path: Path, commit: str
) -> None:
    ended = install(recorded, COMMIT=commit)
    assert ended.returncode != 0
    assert ("is empty: write the commit" if not commit else f"v0.1.0 is the commit {COMMIT}, not") in ended.stderr
    assert "pip install" not in read_record(recorded, tmp_path)


def test_a_wheel_and_all_that_it_needs_are_checked_against_hashes(recorded: dict[str, str], tmp_path: Path) -> None:
    wheel = "https://example.com/rowferry-0.1.0-py3-none-any.whl"
    ended = install(recorded, SOURCE=wheel)
    assert (ended.returncode, "is empty: write the SHA-256" in ended.stderr) == (2, True), ended.stderr
    ended = install(recorded, SOURCE=wheel, SHA256="ab" * 32)
    assert ended.returncode == 0, ended.stderr
    installs = [line for line in read_record(recorded, tmp_path).splitlines() if line.startswith("pip install")]
    assert len(installs) == 2
    assert all("--require-hashes --requirement " in line and "://" not in line for line in installs)
    assert installs[1].endswith("/package/requirements.txt")
    assert (tmp_path / "rowferry" / "wheel.txt").read_text() == f"rowferry @ {wheel} --hash=sha256:{'ab' * 32}\n"
    forced = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert forced["force-include"]["requirements/worker.txt"] == "rowferry_worker/requirements.txt"


@pytest.mark.parametrize(("interface", "address"), [("", "127.0.0.1"), ("eth1", "10.0.0.11")])
def test_the_metrics_are_served_on_the_private_network_or_nowhere_but_here(
    recorded: dict[str, str], tmp_path: Path, interface: str, address: str
) -> None:
    assert install(recorded, COMMIT=COMMIT, METRICS_INTERFACE=interface).returncode == 0
    settings = (tmp_path / "units" / f"{UNIT}.d" / "metrics.conf").read_text()
    assert settings == f"[Service]\nEnvironment=ROWFERRY_WORKER_METRICS_HOST={address}\n"
    assert "METRICS_HOST" not in read_files()["/etc/rowferry/worker.env"]["content"]


def test_the_database_is_checked_by_its_certificate() -> None:
    assert "sslmode=verify-full&sslrootcert=/" in read_files()["/etc/rowferry/database_url"]["content"]
    assert "\nROWFERRY_GRAFANA_DB_SSLMODE=verify-full\n" in (ROOT / "compose" / "own.env").read_text()
