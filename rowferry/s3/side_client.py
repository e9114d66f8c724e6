"""Opens the client of one side exactly as workers do, and asks over it for the side's bucket."""

import os
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from functools import partial

from rowferry.errors import BucketNotFound, ObjectNotFound, ObjectRejected, SideFault, UsageError
from rowferry.plan import Side
from rowferry.s3.client import MAX_BODY_BYTES, ObjectClient
from rowferry.s3.credentials import load_credentials
from rowferry.s3.endpoint import resolve_endpoint
from rowferry.s3.operations import head_bucket

REQUEST_DEADLINE = timedelta(seconds=60)
"""How long one request may take unless told otherwise; a copy of 5 GiB takes a server some ten seconds."""


def open_object_client(
    side: Side,
    *,
    max_in_flight: int = 1,
    deadline: timedelta = REQUEST_DEADLINE,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> ObjectClient:
    """Return a client of `side`, with the credentials, the endpoint and the trust that workers have; close it.

    Nothing is sent yet. Raises UsageError for an unusable endpoint, region or bundle of certificates, and where there
    are no credentials; CredentialsUnavailable when expiring ones cannot be had.
    """
    return ObjectClient(
        side,
        load_credentials(side, os.environ),
        endpoint=resolve_endpoint(side),
        max_in_flight=max_in_flight,
        deadline=deadline,
        max_body_bytes=max_body_bytes,
        reload=partial(load_credentials, side, os.environ),
    )


def check_bucket(client: ObjectClient, side: Side, *, tries: int = 1) -> None:
    """Return when the bucket is there and may be looked at.

    Raises BucketNotFound, AccessDenied, SideFault, Unreachable and the like; UsageError when it is in another region.
    """
    try:
        response = client.ask(head_bucket(side.name), tries=tries)
    except (ObjectRejected, SideFault) as error:
        _refuse_other_region(side, error.headers)
        raise
    except ObjectNotFound as error:
        raise BucketNotFound("NoSuchBucket", f"there is no bucket {side.bucket!r}") from error
    if side.endpoint_url is None:  # other servers may name any region
        _refuse_other_region(side, response.headers)


def ask_bucket(side: Side, within: timedelta) -> None:
    """Ask for the bucket on a new connection. Raises Unreachable or TimedOut when there is no answer in time."""
    with closing(open_object_client(side, deadline=within)) as client:
        client.ask(head_bucket(side.name))


def _refuse_other_region(side: Side, headers: Mapping[str, str]) -> None:
    """Raise UsageError where the server names another region than the plan."""
    region = headers.get("x-amz-bucket-region", "")
    if region and region != side.region:
        raise UsageError(f"{side.bucket} is in {region}, not in {side.region}: set {side.name}.region to {region}")
