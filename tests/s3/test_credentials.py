"""Whose credentials each side has, and how those that expire are renewed: a secret is told nowhere."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.credentials import RefreshableCredentials

from rowferry.errors import CredentialsUnavailable, UsageError
from rowferry.plan import LegacySide, ProductionSide, Side
from rowferry.s3.access import credentials
from rowferry.s3.access.credentials import KeyRing, expires, load_credentials, take_snapshot
from support.processes.processes import wait_for
from support.s3.clients import HEAD, ask, facing
from support.s3.stand_in import answer

LEGACY = LegacySide("old")
PRODUCTION = ProductionSide("new")
PROFILE = LegacySide("old", profile="archive")


@pytest.fixture
def _profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "credentials"
    path.write_text(
        "[default]\naws_access_key_id=DEFAULT\naws_secret_access_key=s0\n"
        "[archive]\naws_access_key_id=ARCHIVE\naws_secret_access_key=s1\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))


def test_each_side_has_variables_of_its_own() -> None:
    environ = {
        "ROWFERRY_LEGACY_ACCESS_KEY_ID": "L",
        "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": "ls",
        "ROWFERRY_PRODUCTION_ACCESS_KEY_ID": "P",
        "ROWFERRY_PRODUCTION_SECRET_ACCESS_KEY": "ps",
        "ROWFERRY_PRODUCTION_SESSION_TOKEN": "pt",
    }
    legacy = load_credentials(LEGACY, environ).get_frozen_credentials()
    production = load_credentials(PRODUCTION, environ).get_frozen_credentials()
    assert (legacy.access_key, legacy.secret_key, legacy.token) == ("L", "ls", None)
    assert (production.access_key, production.secret_key, production.token) == ("P", "ps", "pt")


@pytest.mark.usefixtures("_profiles")
def test_variables_go_before_a_profile_and_a_profile_before_the_chain() -> None:
    environ = {"ROWFERRY_LEGACY_ACCESS_KEY_ID": "L", "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": "ls"}
    for side, given, name in ((PROFILE, environ, "L"), (PROFILE, {}, "ARCHIVE"), (LEGACY, {}, "DEFAULT")):
        assert load_credentials(side, given).get_frozen_credentials().access_key == name


def test_a_worker_whose_keys_are_in_variables_starts_without_boto3() -> None:
    """It takes a third of a worker's start."""
    program = (
        "import os, sys, rowferry_worker.daemon\n"
        "from rowferry.plan import LegacySide\n"
        "from rowferry.s3.client import open_object_client\n"
        "open_object_client(LegacySide('b', endpoint_url='https://h')).close()\n"
        "sys.exit(' '.join({name.split('.')[0] for name in sys.modules} & {'boto3', 'botocore', 'urllib3'}) or 0)"
    )
    named = {L_ID: "L", L_SECRET: "ls"}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | named, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


L_ID, L_SECRET, L_TOKEN = (
    f"ROWFERRY_LEGACY_{name}" for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
)
MISTAKES: tuple[tuple[Side, dict[str, str], str], ...] = (
    (LEGACY, {L_ID: "s3cr3t"}, f"{L_SECRET} is not"),
    (LEGACY, {L_SECRET: "s3cr3t"}, f"{L_ID} is not"),
    (LEGACY, {L_TOKEN: "s3cr3t"}, f"{L_TOKEN} is set"),
    (LEGACY, {L_ID: "s3cr3t", L_SECRET: ""}, "SECRET_ACCESS_KEY is not"),
    (PRODUCTION, {}, "ROWFERRY_PRODUCTION_ACCESS_KEY_ID"),
    (PROFILE, {}, "legacy.profile 'archive'"),
)


def test_credentials_that_are_not_there_are_a_mistake_that_says_what_to_set(subtests: pytest.Subtests) -> None:
    for side, environ, words in MISTAKES:
        with subtests.test(words):
            with pytest.raises(UsageError, match=re.escape(words)) as mistake:
                load_credentials(side, environ)
            assert "s3cr3t" not in str(mistake.value)


def test_a_secret_is_in_no_representation() -> None:
    environ = {"ROWFERRY_LEGACY_ACCESS_KEY_ID": "L", "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": "s3cr3t"}
    loaded = load_credentials(LEGACY, environ)
    assert "s3cr3t" not in f"{loaded!r} {loaded}"
    assert not expires(loaded)


class Issuer:
    """Issues temporary credentials, numbered, for as long as it works."""

    def __init__(self, *, valid: timedelta = timedelta(hours=1)) -> None:
        self.valid = valid
        self.issued = 0
        self.works = True

    def __call__(self) -> dict[str, str]:
        if not self.works:
            raise OSError("the issuer says s3cr3t")
        self.issued += 1
        expiry = (datetime.now(UTC) + self.valid).isoformat()
        return {
            "access_key": f"K{self.issued}",
            "secret_key": "s3cr3t",
            "token": f"t{self.issued}",
            "expiry_time": expiry,
        }

    def credentials(self) -> RefreshableCredentials:
        return RefreshableCredentials.create_from_metadata(self(), refresh_using=self, method="test")


@pytest.fixture
def _checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "CHECK_EVERY", timedelta(milliseconds=5))


@pytest.mark.usefixtures("_checked_often")
def test_expiring_credentials_are_renewed_and_the_last_ones_serve_until_they_expire() -> None:
    issuer = Issuer()
    held = issuer.credentials()
    assert expires(held)
    fresh = KeyRing(held)
    with ExitStack() as until:
        until.callback(fresh.stop)
        assert fresh.current.access_key == "K1"
        held._expiry_time = datetime.now(UTC) + timedelta(minutes=5)
        wait_for(lambda: fresh.current.access_key == "K2")
        assert fresh.failure is None
        assert "s3cr3t" not in repr(fresh)
        issuer.works = False
        held._expiry_time = datetime.now(UTC) + timedelta(minutes=5)
        assert (fresh.current.access_key, fresh.failure) == ("K2", None)
        held._expiry_time = datetime.now(UTC) - timedelta(seconds=1)
        wait_for(lambda: fresh.failure is not None)
        assert "s3cr3t" not in str(fresh.failure)
        issuer.works = True
        wait_for(lambda: fresh.failure is None)
        assert fresh.current.access_key == "K3"


@pytest.mark.usefixtures("_checked_often")
def test_renewed_credentials_sign_the_next_request_and_those_that_cannot_be_renewed_end_it_without_a_hang() -> None:
    issuer = Issuer()
    held = issuer.credentials()
    with facing(answer(200), credentials=held) as (client, server):
        ask(client, HEAD)
        held._expiry_time = datetime.now(UTC) + timedelta(seconds=30)
        wait_for(lambda: ask(client, HEAD).error is None and "Credential=K2/" in server.requests[-1])
        assert "Credential=K1/" in server.requests[0]
        assert "x-amz-security-token: t2" in server.requests[-1].lower()
        issuer.works = False
        held._expiry_time = datetime.now(UTC) - timedelta(seconds=1)
        wait_for(lambda: ask(client, HEAD).error is not None)
        error = ask(client, HEAD).error
    assert isinstance(error, CredentialsUnavailable)
    assert "s3cr3t" not in str(error)


def test_credentials_that_cannot_be_had_at_all_are_an_error_without_words_of_theirs() -> None:
    issuer = Issuer(valid=timedelta(seconds=-1))
    held = issuer.credentials()
    issuer.works = False
    with pytest.raises(CredentialsUnavailable) as unavailable:
        take_snapshot(held)
    assert "s3cr3t" not in str(unavailable.value)
    assert unavailable.value.retryable
