"""Credentials of one side, from its own variables, its profile or boto3's chain; refreshed where they expire."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple, cast

from rowferry.environment import read_secret
from rowferry.errors import CredentialsUnavailable, UsageError
from rowferry.plan import Side

CHECK_EVERY = timedelta(seconds=15)
"""How often expiring credentials are checked; botocore refreshes them 15 to 10 minutes before they expire."""

Credentials = Any
"""A CredentialSnapshot, or botocore's credentials: these carry no types."""


@dataclass(frozen=True, slots=True, repr=False)
class CredentialSnapshot:
    """The credentials of one moment; those that variables of the environment hold do not expire."""

    access_key: str
    secret_key: str
    token: str | None

    def get_frozen_credentials(self) -> "CredentialSnapshot":
        """Return these, as botocore's credentials do."""
        return self


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
        return CredentialSnapshot(access_key, secret_key, token or None)
    from rowferry.s3.access import boto  # noqa: PLC0415 - a third of a worker's start

    return boto.find_credentials(side.name, side.profile, f"set {names.access_key} and {names.secret_key}")


def _name_variables(side: Side) -> _Variables:
    start = f"ROWFERRY_{side.name.upper()}"
    return _Variables(f"{start}_ACCESS_KEY_ID", f"{start}_SECRET_ACCESS_KEY", f"{start}_SESSION_TOKEN")


def expires(credentials: Credentials) -> bool:
    """Return whether these are botocore's refreshable credentials (STS, instance roles, SSO, processes)."""
    return hasattr(credentials, "refresh_needed")


def take_snapshot(credentials: Credentials) -> CredentialSnapshot:
    """Return the credentials of this moment; may ask a metadata service or STS, and so block for seconds.

    Raises CredentialsUnavailable, whose words carry no secret, when they cannot be had.
    """
    if isinstance(credentials, CredentialSnapshot):
        return credentials
    from rowferry.s3.access import boto  # noqa: PLC0415 - whose credentials these are

    try:
        found = credentials.get_frozen_credentials()
        return CredentialSnapshot(found.access_key, found.secret_key, found.token)
    except (*boto.FAULTS, RuntimeError, OSError, KeyError, ValueError) as error:
        # A credential process may put anything into its error: only the class is repeated.
        raise CredentialsUnavailable(
            "CredentialsUnavailable", f"renewing them failed: {type(error).__name__}"
        ) from error


class KeyRing:
    """The credentials to sign with; expiring ones are refreshed ahead of time on a thread: signing never waits."""

    def __init__(self, credentials: Credentials) -> None:
        """Fetch the credentials and start to refresh them. Raises CredentialsUnavailable where that fails."""
        self._credentials = credentials
        self.current = take_snapshot(credentials)
        """The last credentials that could be fetched, or others that took their place."""
        self.failure: str | None = None
        """Why nothing can be signed: refreshing fails and the last ones have expired. None as a rule."""
        self.refreshes = expires(credentials)
        self._stopped = threading.Event()
        if self.refreshes:
            threading.Thread(target=self._refresh, name="rowferry-credentials", daemon=True).start()

    def __repr__(self) -> str:
        return "KeyRing(...)"

    def stop(self) -> None:
        """Stop to refresh; the thread ends after its current check."""
        self._stopped.set()

    def _refresh(self) -> None:
        while not self._stopped.wait(CHECK_EVERY.total_seconds()):
            try:
                self.current = take_snapshot(self._credentials)
            except CredentialsUnavailable:
                self.failure = "they expired and could not be renewed" if self._have_expired() else None
            else:
                self.failure = None

    def _have_expired(self) -> bool:
        refresh_needed = cast("Callable[[int], bool]", getattr(self._credentials, "refresh_needed", bool))
        return refresh_needed(0)
