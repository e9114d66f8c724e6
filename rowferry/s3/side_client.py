"""Opens the client of one side exactly as workers do, and asks over it for the side's bucket."""

import os
from contextlib import closing
from datetime import timedelta
from functools import partial

from rowferry.errors import BucketNotFound, ObjectNotFound, ObjectRejected, SideFault, UsageError
from rowferry.plan import Side
from rowferry.s3.client import MAX_BODY_BYTES, ObjectClient
from rowferry.s3.credentials import load_credentials
from rowferry.s3.endpoint import resolve_endpoint
from rowferry.s3.operations import head_bucket
from rowferry.s3.responses import Answer

REQUEST_DEADLINE = timedelta(seconds=60)
"""How long one request may take unless told otherwise; a copy of 5 GiB takes a server some ten seconds."""


def open_object_client(
    side: Side,
    *,
    max_in_flight: int = 1,
    deadline: timedelta = REQUEST_DEADLINE,
    max_body_bytes: int = MAX_BODY_BYTES,
    backoff: timedelta | None = None,
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
        backoff=backoff,
        reload=partial(load_credentials, side, os.environ),
    )


def check_bucket(client: ObjectClient, side: Side) -> None:
    """Return when the bucket is there and may be looked at.

    Raises BucketNotFound, AccessDenied, SideFault, Unreachable and the like; UsageError when it is in another region.
    """
    answer = client.ask(head_bucket(side.name))
    _refuse_other_region(side, answer)
    if isinstance(answer.error, ObjectNotFound):
        raise BucketNotFound("NoSuchBucket", f"there is no bucket {side.bucket!r}") from answer.error
    if answer.error is not None:
        raise answer.error


def ask_bucket(side: Side, within: timedelta) -> None:
    """Ask for the bucket on a new connection. Raises Unreachable or TimedOut when there is no answer in time."""
    with closing(open_object_client(side, deadline=within)) as client:
        answer = client.ask(head_bucket(side.name))
    if answer.error is not None:
        raise answer.error


def _refuse_other_region(side: Side, answer: Answer) -> None:
    """Raise UsageError where the server names another region than the plan; only AWS is taken at its word in a 200."""
    region = answer.headers.get("x-amz-bucket-region", side.region)
    is_refused = isinstance(answer.error, ObjectRejected | SideFault)
    is_told_by_aws = answer.error is None and side.endpoint_url is None
    if region and region != side.region and (is_refused or is_told_by_aws):
        raise UsageError(f"{side.bucket} is in {region}, not in {side.region}: set {side.name}.region to {region}")
