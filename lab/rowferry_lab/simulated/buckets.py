"""The buckets of a simulated environment: made, emptied and filled. The only code that writes to a legacy bucket."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from typing import Any

from msgspec.structs import asdict

from rowferry.errors import BucketNotFound, ObjectError, UsageError
from rowferry.http import event_loop
from rowferry.plan import Plan, ProductionSide, Side
from rowferry.s3.access.credentials import load_credentials
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.boto import Bucket, open_client
from rowferry.s3.client import ObjectClient
from rowferry.s3.errors import BOTO_ERRORS, translate_boto_error
from rowferry.s3.operations import put_object
from rowferry.s3.retry import send_many
from rowferry_lab.simulated.images import SampleImage

IN_FLIGHT = 32
"""Images on their way at once."""
DEADLINE = timedelta(seconds=60)


def refuse_real_data(plan: Plan) -> None:
    """Raise UsageError unless the plan is marked as simulated."""
    if not plan.migration.simulated:
        raise UsageError(
            f"The plan {plan.name} is not simulated, so nothing was touched: `prepare` deletes tables and objects, "
            "and does so only where [migration] says `simulated = true`."
        )


def ready_bucket(plan: Plan, side: Side, *, empty: bool) -> None:
    """Make the bucket if it is not there; otherwise delete all its objects if `empty`.

    Raises UsageError. Deletes nothing of a plan that is not simulated.
    """
    refuse_real_data(plan)
    with closing(open_client(side, load_credentials(side, os.environ))) as client:
        try:
            Bucket(side, client).check_exists()
            if empty:
                _empty_bucket(client, side)
        except BucketNotFound:
            elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": side.region}}
            client.create_bucket(Bucket=side.bucket, **({} if side.region == "us-east-1" else elsewhere))
        except (ObjectError, *BOTO_ERRORS) as error:
            found = error if isinstance(error, ObjectError) else translate_boto_error(error, side)
            raise UsageError(f"The {side.name} bucket {side.bucket} cannot be prepared: {found}.") from error


def _empty_bucket(client: Any, side: Side) -> None:
    """Delete all objects, a thousand a request."""
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=side.bucket):
        doomed = [{"Key": found["Key"]} for found in page.get("Contents", [])]
        if not doomed:
            continue
        answer = client.delete_objects(Bucket=side.bucket, Delete={"Objects": doomed, "Quiet": True})
        for error in answer.get("Errors", []):
            raise UsageError(f"Object {error['Key']!r} of {side.bucket} cannot be deleted: {error.get('Message')}.")


@contextmanager
def open_writers(plan: Plan) -> Generator[Callable[[Sequence[SampleImage]], None]]:
    """Yield what writes images to both buckets, many at once. It raises UsageError where one cannot be written.

    Raises UsageError unless the plan is simulated.
    """
    refuse_real_data(plan)
    with ExitStack() as until:
        clients = {
            side.name: until.enter_context(closing(_open_writer(side))) for side in (plan.legacy, plan.production)
        }

        def write(images: Sequence[SampleImage]) -> None:
            for side, client in clients.items():
                requests = [
                    put_object(image.key, image.body, headers=image.headers, if_none_match=False)
                    for image in images
                    if image.side == side
                ]
                for result in event_loop.run(send_many(client.send, requests, at_once=IN_FLIGHT)):
                    if isinstance(result, ObjectError):
                        raise UsageError(f"An image could not be written: {result}.") from result

        yield write


def _open_writer(side: Side) -> ObjectClient:
    """Return a client that writes to the side's bucket: as if it were production, for no other code may do that."""
    return ObjectClient(
        ProductionSide(**{name: value for name, value in asdict(side).items() if name != "immutable"}),
        load_credentials(side, os.environ),
        endpoint=resolve_endpoint(side),
        max_in_flight=IN_FLIGHT,
        deadline=DEADLINE,
    )
