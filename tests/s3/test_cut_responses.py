"""An answer of 200 that ends before it says what was done is no success: it may have been about to tell an error."""

import pytest

from rowferry.errors import ServerFault
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_worker.copying.copy import CopyOptions, copy_object
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport
from support.s3.fake_buckets import FakeBuckets, stored

CUT = Response(200, {}, b'<?xml version="1.0" encoding="UTF-8"?>\n')


def fake_that_cuts(*operations: str) -> FakeBuckets:
    """Return fake that answer these operations with the beginning of an answer, and do nothing."""

    def cut(request: Request) -> Response | None:
        return CUT if request.operation in operations else None

    fake = FakeBuckets(legacy={"image/a": stored(b"0123456789")})
    fake.interfere = cut
    return fake


@pytest.mark.parametrize(
    ("method", "operation"),
    [
        (ServerCopy("legacy"), "CopyObject"),
        (ServerCopy("legacy", 4), "UploadPartCopy"),
        (ServerCopy("legacy", 4), "CompleteMultipartUpload"),
        (StreamCopy(threshold_bytes=4), "UploadPart"),
        (StreamCopy(threshold_bytes=4), "CompleteMultipartUpload"),
    ],
)
def test_a_cut_answer_is_a_fault_of_the_server(method: CopyMethod, operation: str) -> None:
    fake = fake_that_cuts(operation)
    options = CopyOptions(method, ConditionalWriteSupport("new"))
    with pytest.raises(ServerFault, match="UnreadableResponse"):
        fake.run(copy_object(fake.s3, options, "image/a", "avatar/a"))
    assert fake.production == {}
    # The server may still be at work on what it was told to complete.
    assert bool(fake.uploads) == (operation == "CompleteMultipartUpload")
