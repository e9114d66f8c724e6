"""The hot path's credentials and processes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from botocore.credentials import RefreshableCredentials

from rowferry.errors import CredentialsUnavailable
from support.processes.processes import wait_for
from support.s3.clients import HEAD, ask, facing
from support.s3.stand_in import answer


def expiring(renew: Callable[[], dict[str, str]], *, valid: timedelta) -> RefreshableCredentials:
    expiry = (datetime.now(UTC) + valid).isoformat()
    first = {"access_key": "FIRST", "secret_key": "s", "token": "t1", "expiry_time": expiry}
    return RefreshableCredentials.create_from_metadata(first, refresh_using=renew, method="test")


@pytest.fixture
def _renewed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowferry.s3.access.credentials.CHECK_EVERY", timedelta(milliseconds=20))


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
