"""An answer of 200 that ends before it says what was done is no success: it may have been about to tell an error."""

import pytest

from rowferry.errors import ServerFault
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.objects.conditional_writes import Condition
from rowferry_worker.objects.copy import Way, copy_object
from rowferry_worker.objects.transfer import Carrier, ServerCopy, StreamCopy
from shelves import Shelves, Stored

CUT = Answer(200, {}, b'<?xml version="1.0" encoding="UTF-8"?>\n')


def shelves_that_cut(*operations: str) -> Shelves:
    """Return shelves that answer these operations with the beginning of an answer, and do nothing."""

    def cut(request: Request) -> Answer | None:
        return CUT if request.operation in operations else None

    return Shelves(legacy={"image/a": Stored(b"0123456789")}, interfere=cut, too_large_bytes=4)


@pytest.mark.parametrize(
    ("carrier", "operation"),
    [
        (ServerCopy("old"), "CopyObject"),
        (ServerCopy("old", 4), "UploadPartCopy"),
        (ServerCopy("old", 4), "CompleteMultipartUpload"),
        (StreamCopy(threshold_bytes=4), "UploadPart"),
        (StreamCopy(threshold_bytes=4), "CompleteMultipartUpload"),
    ],
)
def test_a_cut_answer_is_a_fault_of_the_server(carrier: Carrier, operation: str) -> None:
    shelves = shelves_that_cut(operation)
    way = Way(carrier, Condition("new"))
    with pytest.raises(ServerFault, match="UnreadableAnswer"):
        shelves.travel(copy_object(way, "image/a", "avatar/a"))
    assert shelves.production == {}
    # The server may still be at work on what it was told to complete.
    assert bool(shelves.uploads) == (operation == "CompleteMultipartUpload")
