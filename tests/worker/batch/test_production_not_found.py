"""A 404 from the production server is production's: it says nothing of a legacy object."""

import pytest

from rowferry.batch import Entry, Outcome
from rowferry.errors import ObjectNotFound
from rowferry.keys import ObjectKeys
from rowferry.s3.operations import Request, complete_multipart_upload, copy_object, get_object, put_object
from rowferry.s3.responses import name_request
from rowferry_worker.batch.objects import Judge, MappedRow

pytestmark = pytest.mark.fast

COPY = copy_object("new", source_bucket="b", source_key="old", if_none_match=False)
COMPLETE = complete_multipart_upload("new", upload_id="u", parts=[], if_none_match=False)
PUT = put_object("new", b"", if_none_match=False)


@pytest.mark.parametrize("is_required", [True, False])
@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        (get_object("legacy", "old"), Outcome.MISSING),
        (COPY, Outcome.MISSING),
        (PUT, Outcome.FAILED),
        (COMPLETE, Outcome.FAILED),
        (get_object("production", "new"), Outcome.FAILED),
    ],
    ids=lambda each: getattr(each, "operation", ""),
)
def test_only_what_was_asked_of_the_legacy_side_can_be_missing(
    request_: Request, outcome: Outcome, is_required: bool
) -> None:
    error = name_request(ObjectNotFound("NoSuchKey", "no such key"), request_)
    row = MappedRow(Entry("1", "old"), (ObjectKeys("old", "new", is_required=is_required),))
    obstacle = Judge({"old": error}).find_obstacle(row)
    if outcome is Outcome.MISSING and not is_required:
        assert obstacle is None
        return
    assert obstacle is not None
    assert obstacle.outcome is outcome
    if outcome is Outcome.FAILED:
        assert obstacle.error == f"{request_.operation} production: NoSuchKey: no such key"
