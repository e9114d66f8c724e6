"""nginx with Debian's settings stands between workers and S3, and workers are killed."""

from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from support.s3.servers.own import NotInstalled
from support.s3.servers.proxies import NginxProxy
from torture.run import Run
from torture.scenarios.kills import PLAN, migrate_under_kills
from torture.world import World, key_of

WHAT = "workers reach both buckets through nginx, which compresses HTML when asked; SIGKILL at random moments"

FAULTS = frozenset({"SIGKILL", "objects that nginx compresses when asked"})

TYPES = ("text/html", "text/html; charset=utf-8", "text/xml", "application/json", "image/svg+xml", "image/png")
HTML = 2
"""So many of them are compressed where `gzip on` is all that is set."""


def torture(run: Run) -> None:
    """Migrate text through nginx, by each copy method; in the short form as a stream."""
    for way in ("stream",) if run.short else ("stream", "server"):
        plan = PLAN | {"migration": {**PLAN["migration"], "transfer": way}}
        try:
            with run.world(plan=plan) as world, NginxProxy(world.s3) as nginx:
                torture_through(run, world, nginx.endpoint_url)
        except NotInstalled as reason:
            run.skipped.append(str(reason))
            return


def torture_through(run: Run, world: World, endpoint_url: str) -> None:
    kills, entries, seats = (3, 200, 2) if run.short else (60, 2000, 6)
    world.content_types, world.compressible = TYPES, True
    world.migration.reach_through(endpoint_url)
    migrate_under_kills(run, world, kills, entries, seats)
    numbers = range(1, entries + 1)
    some = [number for number in numbers if number % len(TYPES) < HTML][:20]
    run.faults["objects that nginx compresses when asked"] += sum(
        is_compressed(world, endpoint_url, key_of(number)) for number in some
    )
    world.run_final_checks()


def is_compressed(world: World, endpoint_url: str, key: str) -> bool:
    """Return whether a client that asks for compression gets a legacy object compressed."""
    path = f"/{world.migration.legacy.bucket}/{quote(key, safe='/~')}"
    request = AWSRequest("GET", endpoint_url + path)
    S3SigV4Auth(Credentials(world.s3.access_key, world.s3.secret_key), "s3", "us-east-1").add_auth(request)
    connection = HTTPConnection(urlsplit(endpoint_url).netloc, timeout=30)
    try:
        connection.request("GET", path, headers={**dict(request.headers), "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200 and answer.headers["Content-Encoding"] == "gzip"
    finally:
        connection.close()
