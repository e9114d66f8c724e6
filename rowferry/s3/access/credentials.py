"""Credentials of one side, from its own variables, its profile or boto3's chain; refreshed where they expire."""

# pyright: reportMissingTypeStubs=false
# botocore carries no types; what is used of it is narrowed by the protocols below.

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, cast

import boto3.session
from botocore.credentials import Credentials as BotocoreCredentials
from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound

from rowferry.environment import read_secret
from rowferry.errors import CredentialsUnavailable, UsageError
from rowferry.plan import Side

CHECK_EVERY = timedelta(seconds=15)
"""How often expiring credentials are checked; botocore refreshes them 15 to 10 minutes before they expire."""


class CredentialSnapshot(Protocol):
    """The credentials of one moment."""

    @property
    def access_key(self) -> str:
        """The public part."""
        ...

    @property
    def secret_key(self) -> str:
        """The secret part."""
        ...

    @property
    def token(self) -> str | None:
        """The session token of temporary credentials."""
        ...


class Credentials(Protocol):
    """The part of botocore's untyped credentials that rowferry uses."""

    def get_frozen_credentials(self) -> CredentialSnapshot:
        """Return the credentials of this moment, renewed first where they are about to expire."""
        ...


class _Variables(NamedTuple):
    access_key: str
    secret_key: str
    token: str


def load_credentials(side: Side, environ: Mapping[str, str]) -> Credentials:
    """Return the credentials for `side`: ROWFERRY_LEGACY_* (ROWFERRY_PRODUCTION_*), its profile, or boto3's chain.

    Each variable may be given as a file: ROWFERRY_LEGACY_ACCESS_KEY_ID_FILE names it.

    Raises UsageError, naming variables and never values, when there are none or only half a pair.
    """
    names = _name_variables(side)
    access_key, secret_key, token = (read_secret(environ, name) for name in names)
    if bool(access_key) != bool(secret_key) or (token and not access_key):
        present, absent = (names.access_key, names.secret_key) if access_key else (names.secret_key, names.access_key)
        present = present if access_key or secret_key else names.token
        raise UsageError(f"{present} is set but {absent} is not; set {names.access_key} and {names.secret_key}")
    if access_key:
        return cast("Credentials", BotocoreCredentials(access_key, secret_key, token or None))
    return _load_from_boto3(side, names)


def _name_variables(side: Side) -> _Variables:
    start = f"ROWFERRY_{side.name.upper()}"
    return _Variables(f"{start}_ACCESS_KEY_ID", f"{start}_SECRET_ACCESS_KEY", f"{start}_SESSION_TOKEN")


def _load_from_boto3(side: Side, names: _Variables) -> Credentials:
    """Return what boto3 finds for the side's profile or by its chain; it may fetch lazily, at the first use."""
    remedy = f"set {names.access_key} and {names.secret_key}"
    try:
        session: Any = boto3.session.Session(profile_name=side.profile)
        found: Credentials | None = session.get_credentials()
    except ProfileNotFound as error:
        raise UsageError(f"{side.name}.profile {side.profile!r} is in no AWS configuration here; {remedy}") from error
    except (BotoCoreError, ClientError) as error:
        raise UsageError(f"boto3 found no credentials for the {side.name} bucket ({error}); {remedy}") from error
    if found is None:
        raise UsageError(f"there are no credentials for the {side.name} bucket; {remedy}, or an AWS profile")
    return found


def expires(credentials: Credentials) -> bool:
    """Return whether these are botocore's refreshable credentials (STS, instance roles, SSO, processes)."""
    return hasattr(credentials, "refresh_needed")


def take_snapshot(credentials: Credentials) -> CredentialSnapshot:
    """Return the credentials of this moment; may ask a metadata service or STS, and so block for seconds.

    Raises CredentialsUnavailable, whose words carry no secret, when they cannot be had.
    """
    try:
        return credentials.get_frozen_credentials()
    except (BotoCoreError, ClientError, RuntimeError, OSError, KeyError, ValueError) as error:
        # A credential process may put anything into its error: only the class is repeated.
        raise CredentialsUnavailable(
            "CredentialsUnavailable", f"renewing them failed: {type(error).__name__}"
        ) from error


class RefreshingCredentials:
    """Expiring credentials, refreshed ahead of time on a thread, so that signing never waits for them."""

    def __init__(self, credentials: Credentials) -> None:
        """Fetch the credentials and start to refresh them. Raises CredentialsUnavailable where that fails."""
        self._credentials = credentials
        self.snapshot = take_snapshot(credentials)
        """The last credentials that could be fetched."""
        self.failure: str | None = None
        """Why nothing can be signed: refreshing fails and the last ones have expired. None as a rule."""
        self._stopped = threading.Event()
        threading.Thread(target=self._refresh, name="rowferry-credentials", daemon=True).start()

    def __repr__(self) -> str:
        return "RefreshingCredentials(...)"

    def stop(self) -> None:
        """Stop to refresh; the thread ends after its current check."""
        self._stopped.set()

    def _refresh(self) -> None:
        while not self._stopped.wait(CHECK_EVERY.total_seconds()):
            try:
                self.snapshot = take_snapshot(self._credentials)
            except CredentialsUnavailable:
                self.failure = "they expired and could not be renewed" if self._have_expired() else None
            else:
                self.failure = None

    def _have_expired(self) -> bool:
        refresh_needed = cast("Callable[[int], bool]", getattr(self._credentials, "refresh_needed", bool))
        return refresh_needed(0)
