"""One side's bucket through boto3, where speed does not matter: checks, counting, single objects."""

# pyright: reportMissingTypeStubs=false
# botocore carries no types; what is used of it is narrowed at once.

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from types import TracebackType
from typing import Any, Self, cast

import botocore.loaders
import botocore.session
import botocore.utils
from botocore.config import Config

from rowferry.errors import BucketNotFound, ObjectError, ObjectNotFound, ObjectRejected, UsageError
from rowferry.http.trust import find_authorities
from rowferry.plan import Side
from rowferry.s3.access.credentials import Credentials
from rowferry.s3.access.endpoint import Endpoint, refuse_token_in_clear, resolve_endpoint
from rowferry.s3.errors import BOTO_ERRORS, translate_boto_error
from rowferry.s3.operations import REQUESTER_PAYS

__all__ = ["Bucket", "Endpoint", "ObjectInfo", "Upload", "open_bucket", "open_client", "resolve_endpoint"]


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What HEAD tells of an object."""

    size_bytes: int
    etag: str
    """Without quotes."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload that was neither completed nor aborted."""

    key: str
    id: str
    begun_at: datetime


class Bucket:
    """One side's bucket. Every method raises ObjectError subclasses, or UsageError for a name that S3 does not allow.

    Nothing can be written to or deleted from a legacy bucket through it.
    """

    def __init__(self, side: Side, client: Any) -> None:
        """Keep botocore's S3 client of the side."""
        self._side = side
        self._client = client

    def __enter__(self) -> Self:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; the next call would open new ones."""
        self._client.close()

    def check_exists(self) -> None:
        """Return when the bucket is there and may be looked at.

        Raises BucketNotFound, AccessDenied, Unreachable and the like; UsageError when AWS has it in another region.
        """
        try:
            with self._translated():
                response = self._client.head_bucket(Bucket=self._side.bucket)
        except ObjectNotFound as error:
            # HEAD answers without a body: 404 is all it says.
            raise BucketNotFound("NoSuchBucket", f"there is no bucket {self._side.bucket!r}") from error
        region = response.get("BucketRegion", self._side.region)
        if self._side.endpoint_url is None and region != self._side.region:
            side = self._side
            raise UsageError(f"{side.bucket} is in {region}, not in {side.region}: set {side.name}.region to {region}")

    def count_objects(self, prefix: str = "", on_progress: Callable[[int], None] | None = None) -> int:
        """Return how many objects have keys beginning with `prefix`; one request and one `on_progress` per 1,000."""
        count = 0
        for keys in self.list_keys(prefix):
            count += len(keys)
            if on_progress is not None:
                on_progress(count)
        return count

    def list_keys(self, prefix: str = "") -> Iterator[list[str]]:
        """Yield the keys beginning with `prefix`, up to 1,000 at a time: those of one request."""
        for page in self._list_pages(prefix):
            yield [found["Key"] for found in page]

    def head(self, key: str) -> ObjectInfo:
        """Return what the server tells of an object; raises ObjectNotFound."""
        with self._translated():
            response = self._client.head_object(Bucket=self._side.bucket, Key=key)
        return ObjectInfo(response["ContentLength"], response["ETag"].strip('"'))

    def get(self, key: str) -> bytes:
        """Return an object's bytes, all in memory: for small objects. Raises ObjectNotFound."""
        with self._translated():
            return self._client.get_object(Bucket=self._side.bucket, Key=key)["Body"].read()

    def put(self, key: str, body: bytes) -> None:
        """Write an object, over one that may be there; raises ObjectRejected on the legacy side."""
        self._refuse_legacy("written to")
        with self._translated():
            self._client.put_object(Bucket=self._side.bucket, Key=key, Body=body)

    def copy_from(self, source: Side, source_key: str, key: str, *, if_none_match: bool = False) -> None:
        """Let the server copy an object of at most 5 GiB from another of its buckets; for one, not for many.

        With `if_none_match`, raises PreconditionFailed when `key` names an object already, where the server knows the
        condition. Raises ObjectNotFound; ObjectRejected on the legacy side.
        """
        self._refuse_legacy("written to")
        condition = {"IfNoneMatch": "*"} if if_none_match else {}
        payer = {"RequestPayer": "requester"} if source.requester_pays else {}
        source_object = {"Bucket": source.bucket, "Key": source_key}
        with self._translated():
            self._client.copy_object(Bucket=self._side.bucket, Key=key, CopySource=source_object, **condition, **payer)

    def list_uploads(self, prefix: str = "") -> Iterator[Upload]:
        """Yield the multipart uploads to keys beginning with `prefix` that were neither completed nor aborted."""
        with self._translated():
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._side.bucket, Prefix=prefix):
                for found in page.get("Uploads", []):
                    begun_at = cast("Any", botocore.utils).parse_timestamp(found["Initiated"])
                    yield Upload(found["Key"], found["UploadId"], begun_at)

    def abort_upload(self, upload: Upload) -> None:
        """Give an upload up and free its parts, if it is still there; raises ObjectRejected on the legacy side."""
        self._refuse_legacy("aborted in")
        try:
            with self._translated():
                self._client.abort_multipart_upload(Bucket=self._side.bucket, Key=upload.key, UploadId=upload.id)
        except ObjectError as error:
            if error.code != "NoSuchUpload":
                raise

    def _list_pages(self, prefix: str) -> Iterator[list[dict[str, Any]]]:
        with self._translated():
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._side.bucket, Prefix=prefix)
            for page in pages:
                yield page.get("Contents", [])

    def _refuse_legacy(self, done: str) -> None:
        if self._side.name == "legacy":
            raise ObjectRejected("LegacyIsReadOnly", f"nothing is ever {done} the legacy bucket")

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Turn botocore's errors into rowferry's."""
        try:
            yield
        except BOTO_ERRORS as error:
            raise translate_boto_error(error, self._side) from error


class _FixedProvider:
    """A credential provider for botocore: gives it our credentials, which it then refreshes."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def load_credentials(self) -> Credentials:
        return self._credentials


@cache
def _share_models() -> Any:
    """Return botocore's loader of service models, which caches them: they cost 0.1 s of CPU a client."""
    return cast("Any", botocore.loaders).create_loader()


def open_bucket(side: Side, credentials: Credentials, *, within: timedelta | None = None) -> Bucket:
    """Return the bucket of `side`; nothing is sent yet. Raises UsageError for an unusable endpoint or region.

    There are two tries, each with 10 s to connect and 30 s to answer; with `within`, one try with so long for each.
    """
    return Bucket(side, open_client(side, credentials, within=within))


def open_client(
    side: Side, credentials: Credentials, *, max_connections: int = 10, within: timedelta | None = None
) -> Any:
    """Return botocore's own S3 client of `side`, for what Bucket does not offer; its errors are botocore's.

    Timestamps are texts: botocore would parse those of each object of a listing, which takes most of its time.
    """
    endpoint = resolve_endpoint(side)
    refuse_token_in_clear(side, endpoint, credentials)
    session: Any = botocore.session.Session()
    session.register_component("credential_provider", _FixedProvider(credentials))
    session.register_component("data_loader", _share_models())
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
    config: Any = Config(
        connect_timeout=within.total_seconds() if within else 10,
        read_timeout=within.total_seconds() if within else 30,
        max_pool_connections=max_connections,
        retries={"mode": "standard", "total_max_attempts": 1 if within else 2},
        s3={"addressing_style": "virtual" if endpoint.virtual_host else "path"},
        # Other providers refuse the checksums that botocore adds by itself since 1.36.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        ignore_configured_endpoint_urls=True,
    )
    url = endpoint.url if side.endpoint_url else None
    # None: botocore takes the authorities that come with it.
    verify = find_authorities(endpoint.ca_bundle)
    client = session.create_client("s3", region_name=side.region, endpoint_url=url, config=config, verify=verify)
    if side.requester_pays:
        client.meta.events.register("before-sign.s3", _add_payer)
    return client


def _add_payer(request: Any, **_: Any) -> None:
    """Say that the requester pays, in whatever request botocore is about to sign."""
    name, value = REQUESTER_PAYS
    request.headers[name] = value
