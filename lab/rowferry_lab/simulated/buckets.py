"""The buckets of a simulated environment: made, emptied and filled. The only code that writes to a legacy bucket."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta

from rowferry.errors import BucketNotFound, ObjectError, UsageError
from rowferry.http import event_loop
from rowferry.plan import Plan, ProductionSide, Side
from rowferry.s3.access.credentials import load_credentials
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.client import ObjectClient, check_bucket
from rowferry.s3.listings.keys import list_pages
from rowferry.s3.operations import Request, encode_key, put_object
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
    with closing(_open_writer(side)) as client:
        try:
            check_bucket(client, _as_production(side))
            if empty:
                _empty_bucket(client, side)
        except BucketNotFound:
            client.ask(Request("production", "CreateBucket", "PUT", "", ""))
        except ObjectError as error:
            raise UsageError(f"The {side.name} bucket {side.bucket} cannot be prepared: {error}.") from error


def _empty_bucket(client: ObjectClient, side: Side) -> None:
    """Delete all objects, many at once."""
    for keys in list_pages(client.ask, "production"):
        requests = [Request("production", "DeleteObject", "DELETE", key, encode_key(key)) for key in keys]
        for key, result in zip(keys, event_loop.run(send_many(client.send, requests, at_once=IN_FLIGHT)), strict=True):
            if isinstance(result, ObjectError):
                raise UsageError(f"Object {key!r} of {side.bucket} cannot be deleted: {result}.") from result


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
    """Return a client that writes to the side's bucket."""
    return ObjectClient(
        _as_production(side),
        load_credentials(side, os.environ),
        endpoint=resolve_endpoint(side),
        max_in_flight=IN_FLIGHT,
        deadline=DEADLINE,
    )


def _as_production(side: Side) -> ProductionSide:
    """Return the side as if it were production, for no other code may write to a legacy bucket."""
    return ProductionSide(**{name: getattr(side, name) for name in Side.__struct_fields__})
