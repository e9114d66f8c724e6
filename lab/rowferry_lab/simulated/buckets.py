"""The buckets of a simulated environment: made, emptied and filled. The only code that writes to a legacy bucket."""

import os
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future, wait
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Self

from msgspec.structs import asdict

from rowferry.errors import BucketNotFound, ObjectError, UsageError
from rowferry.http import event_loop
from rowferry.plan import Plan, ProductionSide, Side, SideName
from rowferry.s3.access.credentials import load_credentials
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.boto import Bucket, open_client
from rowferry.s3.client import ObjectClient
from rowferry.s3.errors import BOTO_ERRORS, translate_boto_error
from rowferry.s3.operations import put_object
from rowferry.s3.responses import Response
from rowferry.s3.retry import send_with_retries
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

    Raises UsageError, ObjectError. Deletes nothing of a plan that is not simulated.
    """
    refuse_real_data(plan)
    client = open_client(side, load_credentials(side, os.environ))
    with _translated(side):
        try:
            Bucket(side, client).check_exists()
        except BucketNotFound:
            _make_bucket(client, side)
        else:
            if empty:
                _empty_bucket(client, side)
        finally:
            client.close()


def _make_bucket(client: Any, side: Side) -> None:
    elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": side.region}}
    client.create_bucket(Bucket=side.bucket, **({} if side.region == "us-east-1" else elsewhere))


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
def _translated(side: Side) -> Generator[None]:
    try:
        yield
    except BOTO_ERRORS as error:
        raise translate_boto_error(error, side) from error


class Uploads:
    """Writes images to both buckets, many at once; a context manager that waits for all of them in the end."""

    def __init__(self, plan: Plan) -> None:
        """Connect at the first image. Raises UsageError unless the plan is simulated."""
        refuse_real_data(plan)
        self._plan = plan
        self._clients: dict[SideName, ObjectClient] = {}
        self._in_flight: set[Future[Response]] = set()
        self._until = ExitStack()

    def __enter__(self) -> Self:
        """Open a client a side."""
        for side in (self._plan.legacy, self._plan.production):
            client = _open_writer(side)
            self._until.callback(client.close)
            self._clients[side.name] = client
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Wait for the uploads in flight; cancel them after an error. Raises UsageError where one has failed."""
        with self._until:
            if error_type is None:
                self.wait()
            for future in self._in_flight:
                future.cancel()

    def send(self, image: SampleImage) -> None:
        """Send a image as soon as there is room. Raises UsageError where an upload has failed."""
        if len(self._in_flight) >= IN_FLIGHT:
            self._finish_some(FIRST_COMPLETED)
        request = put_object(image.key, image.body, headers=image.headers, if_none_match=False)
        client = self._clients[image.side]
        self._in_flight.add(event_loop.submit(send_with_retries(client.send, request)))

    def wait(self) -> None:
        """Return when no upload is in flight. Raises UsageError where one has failed."""
        self._finish_some(FIRST_EXCEPTION)

    def _finish_some(self, return_when: str) -> None:
        done, self._in_flight = wait(self._in_flight, return_when=return_when)
        for future in done:
            try:
                future.result()
            except ObjectError as error:
                raise UsageError(f"A image could not be written: {error}.") from error


def _open_writer(side: Side) -> ObjectClient:
    """Return a client that writes to the side's bucket: as if it were production, for no other code may do that."""
    return ObjectClient(
        ProductionSide(**{name: value for name, value in asdict(side).items() if name != "immutable"}),
        load_credentials(side, os.environ),
        endpoint=resolve_endpoint(side),
        max_in_flight=IN_FLIGHT,
        deadline=DEADLINE,
    )
