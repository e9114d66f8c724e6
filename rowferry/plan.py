"""The plan: what moves from where to where, and how a legacy key becomes a production key."""

from dataclasses import dataclass
from typing import Literal

SideName = Literal["legacy", "production"]
Transfer = Literal["auto", "server", "stream"]
Addressing = Literal["auto", "path", "virtual"]
OnConflict = Literal["fail", "keep", "overwrite"]
"""What to do where a different production object stands: report it, trust it, or replace it."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides: a bucket, where it is served, and which AWS profile may be asked for credentials."""

    name: SideName
    bucket: str
    endpoint_url: str | None = None
    """None means AWS itself, in `region`."""
    region: str = "us-east-1"
    profile: str | None = None
    addressing: Addressing = "auto"
    """How the bucket is named in a URL: in the path, or as a virtual host; auto: path where an endpoint is given."""
    max_requests_per_second: float | None = None
    """Requests to this side a second, by all workers together; None: what the servers let through."""

    @property
    def server(self) -> str | None:
        """Return the endpoint in one spelling: small letters, no port that the scheme implies, no slash at the end."""
        if self.endpoint_url is None:
            return None
        scheme, _, rest = self.endpoint_url.partition("://")
        authority, _, path = rest.partition("/")
        scheme, authority = scheme.lower(), authority.lower()
        authority = authority.removesuffix({"http": ":80", "https": ":443"}.get(scheme, ":"))
        return f"{scheme}://{authority}/{path.strip('/')}".rstrip("/")


@dataclass(frozen=True, slots=True)
class Entries:
    """One key column of one table: its rows are the entries of the migration."""

    table: str
    """The table as the plan names it, `schema.table` or `table`."""
    id: str
    key: str
    legacy_prefix: str
    """A legacy key begins with this (`from` in the plan)."""
    production_prefix: str
    """A production key begins with this instead (`to` in the plan)."""
    where: str | None = None
    """An SQL condition over the table's columns; rows that do not meet it are no entries."""

    @property
    def label(self) -> str:
        """Return `table.key`, which is unique in a plan and names these entries in batches, views and messages."""
        return f"{self.table}.{self.key}"


@dataclass(frozen=True, slots=True)
class Plan:
    """One migration, as its file says or as the database keeps it."""

    name: str
    legacy: Side
    production: Side
    entries: tuple[Entries, ...]
    transfer: Transfer = "auto"
    max_attempts: int = 5
    simulated: bool = False
    max_rows_per_second: float | None = None
    """Rows rewritten a second, by all workers together; None: no bound."""
    max_replica_lag: float | None = None
    """Workers claim nothing while a streaming replica is further behind than this many seconds; None: they do not
    look."""
    multipart_threshold_bytes: int | None = None
    """Objects above this travel part by part, in parts of at most this size; None: above what one request can carry."""

    @property
    def server_side(self) -> bool:
        """Return whether the production server can copy by itself: both sides are one endpoint and region."""
        if self.transfer != "auto":
            return self.transfer == "server"
        return (self.legacy.server, self.legacy.region) == (self.production.server, self.production.region)
