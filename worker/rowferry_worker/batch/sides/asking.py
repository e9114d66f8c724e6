"""Asks the servers of a migration, all questions at once, and reads the answers."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from rowferry.errors import RESPONSE_TOO_LONG, BucketNotFound, ObjectError, ObjectNotFound, ServerFault, UsageError
from rowferry.http import event_loop
from rowferry.s3.client import check_bucket
from rowferry.s3.operations import abort_multipart_upload, head_object
from rowferry.s3.responses import read_text
from rowferry_worker.batch.sides.judgement import Answer, read_answer
from rowferry_worker.batch.sides.questions import Question
from rowferry_worker.migration import MigrationContext
from rowferry_worker.objects.requests import NO_OBJECT


def ask(migration: MigrationContext, questions: Iterable[Question]) -> list[Answer]:
    """Return the answer to each question; all are asked at once."""
    return event_loop.run(_ask_all(migration, tuple(questions)))


async def _ask_all(migration: MigrationContext, questions: Sequence[Question]) -> list[Answer]:
    return await asyncio.gather(*[_ask(migration, each) for each in questions])


async def _ask(migration: MigrationContext, question: Question) -> Answer:
    if question.request.side not in migration.clients:  # as of a queue of one side
        return Answer.OTHER
    try:
        response = await migration.send(question.request)
        if question.request.operation == "CreateMultipartUpload":
            return await _end_upload(migration, question, read_text(response.body, "UploadId"))
        if not question.has_object:
            raise ServerFault("NoS3Server", "the server has an object for every key, so it is not an S3 server")
    except ObjectError as error:
        is_well = error.code == RESPONSE_TOO_LONG or (question.counts_missing and isinstance(error, ObjectNotFound))
        return Answer.WORKS if is_well else read_answer(error)
    return Answer.WORKS


async def _end_upload(migration: MigrationContext, question: Question, upload_id: str | None) -> Answer:
    if upload_id is None:
        return Answer.DOWN
    key, answer = question.request.key, Answer.WORKS
    try:
        if question.part is not None:
            await migration.send(question.part(key, upload_id=upload_id))
    except ObjectError as error:
        answer = read_answer(error)
    try:
        await migration.send(abort_multipart_upload(key, upload_id=upload_id))
    except ObjectError:
        return answer
    return answer


def look_up_objects(migration: MigrationContext, keys: Iterable[str]) -> list[Any]:
    """Return the response to a HEAD of each legacy key, or its error."""

    async def look_up() -> list[Any]:
        requests = [migration.send(head_object("legacy", key)) for key in keys]
        return await asyncio.gather(*requests, return_exceptions=True)

    return event_loop.run(look_up())


def are_reachable(migration: MigrationContext) -> bool:
    """Return whether both servers respond as S3 servers do, now; waits for at most the deadline of a request."""
    return Answer.DOWN not in ask(migration, [Question(head_object(side, NO_OBJECT)) for side in migration.clients])


def find_lost_bucket(migration: MigrationContext) -> BucketNotFound | None:
    """Return the error for the first bucket in use that is not there; None when all are, or cannot be asked.

    A HEAD does not tell a missing bucket from a missing object.
    """
    for name in sorted(migration.clients):
        side = migration.plan.side(name)
        try:
            check_bucket(migration.clients[name], side)
        except BucketNotFound as lost:
            lost.side = side.name
            return lost
        except (ObjectError, UsageError):
            continue
    return None
