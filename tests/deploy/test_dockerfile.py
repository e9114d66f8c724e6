"""worker/Dockerfile is pinned, labelled, and copies only what the image needs; `make test-image` builds it."""

import re
import tomllib
from pathlib import Path

import botocore
import pytest

from support.checkout import ROOT

pytestmark = pytest.mark.texts

DOCKERFILE = (ROOT / "worker" / "Dockerfile").read_text()
LABELS = "title description licenses vendor version revision created url source documentation"
CREDENTIALS = Path(botocore.__file__).parent / "credentials.py"


def test_the_worker_is_built_on_an_exact_version_of_python() -> None:
    bases = re.findall(r"^(?:FROM|ARG PYTHON_IMAGE=)(.*)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", bases[0])
    stages = {base.split(" AS ")[1] for base in bases if " AS " in base}
    assert {base.split(" AS ")[0].strip() for base in bases[1:]} - stages == {"${PYTHON_IMAGE}"}


def test_the_image_is_locked_and_runs_without_root_and_without_a_shell() -> None:
    lines = DOCKERFILE.splitlines()
    assert any("pip download" in line and "--require-hashes" in line for line in lines)
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"]
    assert 'ENTRYPOINT ["rowferry"]' in lines
    assert [line.startswith('CMD ["worker"') for line in lines if line.startswith("CMD")] == [True]


def test_the_last_stage_of_the_dockerfile_is_the_worker_without_the_lab() -> None:
    stages = DOCKERFILE.split("\nFROM ")
    (worker,) = [stage for stage in stages if stage.partition("\n")[0].endswith(" AS worker")]
    assert stages[-1].strip() == "worker"
    assert "COPY --from=build " in worker


def test_the_build_sees_no_secret_and_nothing_it_does_not_need() -> None:
    """.dockerignore lets in what is listed, and the Dockerfile copies nothing else."""
    listed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    assert {path.split("/")[0] for line in copied for path in line.split()} == set(listed)


def test_the_health_check_is_the_one_that_is_tested_here() -> None:
    assert 'CMD ["python", "-m", "rowferry_cli.container_health"]' in DOCKERFILE
    assert "EXPOSE 9464 9465\n" in DOCKERFILE


def test_the_image_has_every_label() -> None:
    assert re.findall(r"org\.opencontainers\.image\.(\w+)=", DOCKERFILE) == LABELS.split()
    assert 'version="${VERSION}"' in DOCKERFILE
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"\nARG VERSION={project['version']}\n" in DOCKERFILE
    assert f'licenses="{project["license"]}"' in DOCKERFILE
    assert f'source="{project["urls"]["Homepage"]}"' in DOCKERFILE


def test_the_services_that_the_image_keeps_are_all_that_credentials_come_from() -> None:
    """botocore's own calls of services; sso-oidc refreshes the tokens of sso."""
    asked = set(re.findall(r"client_?creator\(\s*'([\w-]+)'", CREDENTIALS.read_text()))
    assert {"sts", "sso", "signin"} <= asked
    (kept,) = re.findall(r'^ARG AWS_SERVICES="(.*)"$', DOCKERFILE, re.MULTILINE)
    assert {"s3", "sso-oidc", *asked} == set(kept.split())
