"""Finds connections over the network that others could read, or whose server could be another one."""

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from rowferry.db.connection import Connection
from rowferry.plan import Plan
from rowferry_enqueue.checks.finding import Finding, note

READABLE = "without TLS, so others on the network can read and change what is sent"


def check_connections(connection: Connection, plan: Plan) -> Iterator[Finding]:
    """Yield one note for PostgreSQL, and one for each endpoint, that is not protected; none for this host itself."""
    info = connection.info
    if not is_local(info.hostaddr or info.host):
        settings = {option.keyword: option.val for option in connection.pgconn.info}
        sslmode = (settings.get(b"sslmode") or b"").decode()
        yield from judge_database(info.host, sslmode, is_encrypted=bool(connection.pgconn.ssl_in_use))
    urls: dict[str, list[str]] = {}
    for side in plan.sides:
        if side.endpoint_url is not None:
            urls.setdefault(side.endpoint_url, []).append(side.name)
    for url, names in urls.items():
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_local(parts.hostname or ""):
            are = "buckets are" if len(names) > 1 else "bucket is"
            what = f"the {' and the '.join(names)} {are} reached at {url} {READABLE}"
            yield note(what, "name https:// in `endpoint_url`, if the server has it")


def judge_database(host: str, sslmode: str, *, is_encrypted: bool) -> Iterator[Finding]:
    """Yield a note where a session is not encrypted, or its server was not checked as `verify-full` does."""
    if not is_encrypted:
        yield note(f"PostgreSQL at {host} is reached {READABLE}", "set sslmode=verify-full in DATABASE_URL")
    elif sslmode == "verify-ca":
        what = f"the certificate of PostgreSQL at {host} may be that of another host (sslmode=verify-ca)"
        yield note(what, "set sslmode=verify-full in DATABASE_URL")
    elif sslmode != "verify-full":
        what = f"the certificate of PostgreSQL at {host} is not checked (sslmode={sslmode}): it may be another server"
        yield note(what, "set sslmode=verify-full and sslrootcert in DATABASE_URL")


def is_local(host: str) -> bool:
    """Return whether a host is this one: a socket's folder, localhost, or an address of the loopback interface."""
    if host in {"", "localhost"} or host.startswith(("/", "@")):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
