"""worker/Dockerfile is pinned, labelled, and copies only what the image needs; `make test-image` builds it."""

import re
from pathlib import Path

import botocore
import pytest

from support.checkout import ROOT

pytestmark = pytest.mark.texts

DOCKERFILE = (ROOT / "worker" / "Dockerfile").read_text()
LINES = DOCKERFILE.splitlines()
CREDENTIALS = Path(botocore.__file__).parent / "credentials.py"


def test_the_worker_is_built_on_an_exact_version_of_python_and_without_the_lab() -> None:
    bases = re.findall(r"^(?:FROM|ARG PYTHON_IMAGE=)(.*)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", bases[0])
    names = {base.split(" AS ")[1] for base in bases if " AS " in base}
    assert {base.split(" AS ")[0].strip() for base in bases[1:]} - names == {"${PYTHON_IMAGE}"}
    stages = DOCKERFILE.split("\nFROM ")
    (worker,) = [stage for stage in stages if stage.partition("\n")[0].endswith(" AS worker")]
    assert stages[-1].strip() == "worker"
    assert "COPY --from=build " in worker


def test_the_image_is_locked_runs_without_root_and_asks_the_health_check() -> None:
    assert any("pip download" in line and "--require-hashes" in line for line in LINES)
    assert [line for line in LINES if line.startswith("USER")] == ["USER 10001:10001"]
    assert 'ENTRYPOINT ["rowferry"]' in LINES
    assert [line.startswith('CMD ["worker"') for line in LINES if line.startswith("CMD")] == [True]
    assert 'CMD ["python", "-m", "rowferry_cli.container_health"]' in DOCKERFILE
    assert "EXPOSE 9464 9465" in LINES


def test_the_build_sees_no_secret_and_nothing_it_does_not_need() -> None:
    """.dockerignore lets in what is listed, and the Dockerfile copies nothing else."""
    listed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    assert {path.split("/")[0] for line in copied for path in line.split()} == set(listed)


def test_the_services_that_the_image_keeps_are_all_that_credentials_come_from() -> None:
    """botocore's own calls of services; sso-oidc refreshes the tokens of sso."""
    asked = set(re.findall(r"client_?creator\(\s*'([\w-]+)'", CREDENTIALS.read_text()))
    assert {"sts", "sso", "signin"} <= asked
    (kept,) = re.findall(r'^ARG AWS_SERVICES="(.*)"$', DOCKERFILE, re.MULTILINE)
    assert {"s3", "sso-oidc", *asked} == set(kept.split())
