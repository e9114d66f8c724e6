"""The hot path's certificates, credentials and processes."""

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.credentials import RefreshableCredentials

from clients import HEAD, WAIT_SECONDS, ask, facing, opened, side_of
from processes import wait_for
from rowferry.endpoint import resolve_endpoint
from rowferry.errors import (
    CredentialsUnavailable,
    TimedOut,
    Unreachable,
)
from stand_in import StandIn, answer


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 and its key, each into a file."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    key_bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    certificate_path, key_path = folder / "certificate.pem", folder / "key.pem"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(key_bytes)
    return certificate_path, key_path


def test_https_trusts_the_bundle_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with StandIn(answer(200), tls=tls) as server:
        endpoint = replace(resolve_endpoint(side_of(server)), ca_bundle=None)
        with opened(side_of(server), endpoint=replace(endpoint, ca_bundle=str(certificate))) as client:
            assert ask(client, HEAD).error is None
        # s2n takes 10 to 30 s to admit that it trusts nobody: the deadline may come first.
        with opened(side_of(server), endpoint=endpoint, deadline=timedelta(seconds=0.5)) as client:
            assert isinstance(ask(client, HEAD).error, Unreachable | TimedOut)
            client.close(timedelta(seconds=0.1))
    assert len(server.requests) == 1


def expiring(renew: Callable[[], dict[str, str]], *, valid: timedelta) -> RefreshableCredentials:
    expiry = (datetime.now(UTC) + valid).isoformat()
    first = {"access_key": "FIRST", "secret_key": "s", "token": "t1", "expiry_time": expiry}
    return RefreshableCredentials.create_from_metadata(first, refresh_using=renew, method="test")


@pytest.fixture
def _renewed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowferry.credentials.CHECK_EVERY", timedelta(milliseconds=20))


@pytest.mark.usefixtures("_renewed_often")
def test_renewed_credentials_sign_the_next_request() -> None:
    names = iter(["SECOND", "THIRD"])

    def renew() -> dict[str, str]:
        expiry = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        return {"access_key": next(names), "secret_key": "s", "token": "t2", "expiry_time": expiry}

    credentials = expiring(renew, valid=timedelta(hours=1))
    with facing(answer(200), credentials=credentials) as (client, server):
        ask(client, HEAD)
        credentials._expiry_time = datetime.now(UTC) + timedelta(seconds=30)
        wait_for(lambda: ask(client, HEAD).error is None and "Credential=SECOND/" in server.requests[-1])
    assert "Credential=FIRST/" in server.requests[0]
    assert "x-amz-security-token: t2" in server.requests[-1].lower()


@pytest.mark.usefixtures("_renewed_often")
def test_credentials_that_cannot_be_renewed_end_requests_without_a_hang() -> None:
    def renew() -> dict[str, str]:
        raise OSError("the metadata service has the secret s3cr3t")

    credentials = expiring(renew, valid=timedelta(hours=1))
    with facing(answer(200), credentials=credentials) as (client, _):
        assert ask(client, HEAD).error is None
        credentials._expiry_time = datetime.now(UTC) - timedelta(seconds=1)
        wait_for(lambda: ask(client, HEAD).error is not None)
        error = ask(client, HEAD).error
        assert isinstance(error, CredentialsUnavailable)
        assert "s3cr3t" not in str(error)


FORK = """
import os, queue, sys
from datetime import timedelta
from botocore.credentials import Credentials
from rowferry import s3_request
from rowferry.endpoint import resolve_endpoint
from rowferry.object_client import ObjectClient
from rowferry.plan import Side

side = Side("production", "bucket", endpoint_url=sys.argv[1])

def ask_once():
    client = ObjectClient(side, Credentials("AK", "SK"), endpoint=resolve_endpoint(side), max_in_flight=2,
                          deadline=timedelta(seconds=20))
    answers = queue.SimpleQueue()
    client.send(s3_request.head_object("production", "k"), answers.put)
    answer = answers.get(timeout=30)
    client.close()
    return answer.error is None

assert ask_once()
child = os.fork()
if child == 0:
    os._exit(0 if ask_once() else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_can_make_a_client_of_its_own() -> None:
    with StandIn(answer(200)) as server:
        command = [sys.executable, "-W", "ignore", "-c", FORK, server.endpoint_url]
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
        try:
            _, words = process.communicate(timeout=WAIT_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    assert process.returncode == 0, words
    assert len(server.requests) == 2
