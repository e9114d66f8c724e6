"""Asks the servers of a migration, all questions at once: of what fails, of what succeeded, and of others that wait."""

import asyncio
from collections.abc import Mapping
from random import sample
from typing import TypeVar

from psycopg import Error

from rowferry.db.connection import fetch_one
from rowferry.db.entries import make_entries
from rowferry.db.statements import statement
from rowferry.errors import RESPONSE_TOO_LONG, MigrationFault, ObjectError, ServerFault
from rowferry.http import event_loop
from rowferry.keys import map_entry, map_object
from rowferry.reports.facts import READABLE, WRITTEN
from rowferry.s3.operations import abort_multipart_upload, head_object
from rowferry.s3.responses import read_text
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.sides.judgement import Answer, Answers, Suspicion, read_answer
from rowferry_worker.batch.sides.questions import Question, ask_of_nothing, ask_of_object
from rowferry_worker.batch.writes import read_and_undo
from rowferry_worker.migration import MigrationContext
from rowferry_worker.objects.requests import NO_OBJECT

T = TypeVar("T")
MOST = 8
"""So many other batches are looked at."""
Keys = tuple[str, str]
"""The legacy and the production key of an object."""


def ask(migration: MigrationContext, questions: Mapping[T, Question | None]) -> dict[T, Answer]:
    """Return the answer to each question; all are asked at once."""
    asked = {name: question for name, question in questions.items() if question is not None}

    async def ask_all() -> list[Answer]:
        return await asyncio.gather(*[_ask(migration, question) for question in asked.values()])

    return dict(zip(asked, event_loop.run(ask_all()), strict=True))


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
        answer = read_answer(error)
        is_well = error.code == RESPONSE_TOO_LONG or (question.counts_missing and answer is Answer.MISSING)
        return Answer.WORKS if is_well else answer
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


def are_reachable(migration: MigrationContext) -> bool:
    """Return whether both servers respond as S3 servers do, now; waits for at most the deadline of a request."""
    asked = {side: Question(head_object(side, NO_OBJECT)) for side in migration.clients}
    return Answer.DOWN not in ask(migration, asked).values()


def ask_elsewhere(context: BatchContext, suspicions: list[Suspicion], waiting: list[Keys]) -> dict[Suspicion, Answers]:
    """Return how each operation goes for no object, for those known, and where that decides nothing, for others.

    `waiting`: objects of the batch that were not begun.
    """
    migration, evidence = context.migration, context.migration.evidence
    if evidence.written is None:
        _learn(context)
    plan, asked = migration.plan, dict[tuple[Suspicion, bool], Question | None]()
    for each in suspicions:
        asked[each, False] = ask_of_nothing(plan, each)
        asked[each, True] = ask_of_object(plan, each, evidence.readable, evidence.written)
    found = ask(migration, asked)
    answers = {each: Answers(found[each, False], found.get((each, True))) for each in suspicions}
    if any(each.is_read and answers[each].known in {Answer.MISSING, Answer.OTHER} for each in suspicions):
        evidence.is_recorded = False  # that object is gone: the next success is kept in its place
    unclear = [each for each in suspicions if answers[each].are_open(each)]
    others = [*sample(waiting, min(len(waiting), MOST)), *sample_objects(context)] if unclear else []
    more = ask(migration, {(each, keys): ask_of_object(plan, each, *keys) for each in unclear for keys in others})
    for each in unclear:
        of_each = {keys: answer for (of, keys), answer in more.items() if of == each}
        answers[each] = Answers(answers[each].nothing, answers[each].known, tuple(of_each.values()))
        if each.is_read and each.operation[0] == "legacy":
            works = (legacy for (legacy, _), answer in of_each.items() if answer is Answer.WORKS)
            evidence.readable = next(works, evidence.readable)
    return answers


def _learn(context: BatchContext) -> None:
    """Take in for which keys other workers have succeeded since this one has opened the migration."""
    evidence = context.migration.evidence
    row = fetch_one(context.connection, statement("load_migration"), {"id": context.batch.migration_id})
    evidence.readable = row["facts"].get(READABLE, evidence.readable)
    evidence.written = row["facts"].get(WRITTEN, evidence.written)
    evidence.is_recorded = evidence.written is not None


def sample_objects(context: BatchContext) -> list[Keys]:
    """Return an object of each of some other batches of the queue; none of those whose rows cannot be read."""
    batch = context.batch
    parameters = {"migration_id": batch.migration_id, "queue": batch.queue_name, "id": batch.id, "most": MOST}
    rows = context.connection.execute(statement("sample_batches"), parameters).fetchall()
    return [keys for row in rows for keys in _find_first(context, row["label"], row["first"], is_row=row["is_row"])]


def _find_first(context: BatchContext, label: str, first: str, *, is_row: bool) -> list[Keys]:
    """Return the first object of a batch; none where it cannot be read."""
    try:
        if not is_row:
            found = [
                map_object(first, each) for each in context.migration.plan.objects if each.label == label and first
            ]
            return [(each.legacy, each.production) for each in found]
        queries = context.migration.entries(context.connection, label)
        parameters = queries.parameters(first=first, last=first)
        read = make_entries(read_and_undo(context.connection, queries.compose_read("legacy"), parameters))
        found = [keys for entry in read for keys in map_entry(entry, queries.entries).objects[:1]]
        return [(each.legacy, each.production) for each in found]
    except (Error, MigrationFault, ValueError):
        return []
