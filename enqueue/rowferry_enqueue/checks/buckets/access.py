"""Checks buckets: legacy objects can be read, production objects written, and one copied to the other."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial

from rowferry.errors import ObjectError, RowferryError
from rowferry.formatting import count
from rowferry.keys import object_prefixes
from rowferry.plan import CannedAcl, Plan, Side
from rowferry.progress import OnProgress
from rowferry.reports.facts import COPY_KEEPS_TAGS, COPY_LEAVES_TAGS_OUT, NO_TAGS, READABLE
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry.s3.cures import cure_of, find_cure, refusal_of
from rowferry.s3.operations import get_object
from rowferry.s3.results import read_tag_count
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.buckets.bucket_errors import check_bucket_exists, explain, refuse, summarise_error
from rowferry_enqueue.checks.buckets.kept_properties import Heads, check_kept_properties
from rowferry_enqueue.checks.buckets.large import check_sizes
from rowferry_enqueue.checks.buckets.objects import Sample, check_objects, find_any_object
from rowferry_enqueue.checks.buckets.prefixes import check_prefixes
from rowferry_enqueue.checks.buckets.probe import ENCRYPTED, TAGGING, Probe, written_probe
from rowferry_enqueue.checks.buckets.probe_properties import ShapedProbe
from rowferry_enqueue.checks.buckets.public import check_legacy_acl, check_public_url
from rowferry_enqueue.checks.finding import Finding, find_problems, fine, note, part, problem

DEADLINE = timedelta(seconds=30)
"""Of one request."""
CONNECTIONS = 16
OF_THE_SAMPLE = frozenset({"archived", "metadata-too-large"})
"""Cases of refusals that hold for the object which is copied as a test, and not for others."""

UNPROTECTED = (
    "; where it is not honoured, each object costs a HEAD right before it is written, and what another writer stores "
    "at its production key between the two is replaced"
)
"""What a server that ignores the condition costs, and does not protect from."""


def check_buckets(
    plan: Plan,
    on_progress: OnProgress,
    samples: Sequence[Sample] = (),
    *,
    may_write: bool = True,
    is_new: bool = True,
    may_be_empty: bool = False,
    facts: dict[str, bool | str] | None = None,
) -> Iterator[Finding]:
    """Yield what requests show, sent by the client that workers use.

    Reads from the legacy side: the objects of the samples, or any that is listed. Writes probe objects to the
    production side and removes them, unless `may_write` is false. `is_new`: the migration was never enqueued.
    `may_be_empty`: it is no problem that a prefix of [[objects]] has no object. Adds to `facts` what
    workers need not find out.
    """
    on_progress("reading the legacy bucket")
    facts = {} if facts is None else facts
    heads: Heads = {}
    findings, source_key, acl = _try_legacy(plan, samples, heads, is_new=is_new, may_be_empty=may_be_empty)
    yield from findings
    if source_key is not None:
        facts[READABLE] = source_key
    on_progress("writing to the production bucket" if may_write else "looking at the production bucket")
    findings = list(_try_production(plan, source_key, acl, facts, heads, may_write=may_write))
    yield from findings
    if source_key is not None and not find_problems(findings):
        yield from check_kept_properties(plan, heads)


def check_readable_buckets(plan: Plan, on_progress: OnProgress) -> Iterator[Finding]:
    """Yield whether the buckets of a plan that moves nothing are there; their queues look at what they need there."""
    for side in plan.sides:
        on_progress(f"looking at the {side.name} bucket")
        try:
            client = _open(side)
        except RowferryError as error:
            yield problem(error)
            continue
        with closing(client):
            findings = check_bucket_exists(client, side)
        yield from findings
        if not find_problems(findings):
            yield fine(f"the {side.name} bucket {side.bucket} is there")


def _try_legacy(
    plan: Plan, samples: Sequence[Sample], heads: Heads, *, is_new: bool, may_be_empty: bool
) -> tuple[list[Finding], str | None, CannedAcl | None]:
    """Return the findings; a legacy object that is small enough to be copied as a test, if there is one; its ACL.

    Adds to `heads` those of the sampled objects.
    """
    side = plan.legacy
    try:
        client = _open(side)
    except RowferryError as error:
        return [problem(error)], None, None
    with closing(client):
        findings = check_bucket_exists(client, side)
        if find_problems(findings):
            return findings, None, None
        sampled = check_objects(client, side, samples, is_new=is_new)
        heads |= sampled.heads
        findings += [*sampled.findings, *check_prefixes(client, plan, may_be_empty=may_be_empty)]
        prefixes = object_prefixes(plan.parts, "legacy")
        key = sampled.small_key or find_any_object(client, side, prefixes)
        if key is None:
            return [*findings, note(f"there is no legacy object in {side.bucket} to read as a test")], None, None
        try:
            client.ask(get_object("legacy", key, first_byte=0, last_byte=0), tries=TRIES)
        except ObjectError as error:
            if error.code != "InvalidRange":
                return [*findings, refuse(side, error, "read", "s3:GetObject")], None, None
        acl_findings, acl = check_legacy_acl(client, plan, key)
    can_be_read = fine(f"the legacy bucket {side.bucket} can be read (legacy: only read)")
    return [can_be_read, *findings, *acl_findings], key, acl


def _try_production(
    plan: Plan,
    source_key: str | None,
    acl: CannedAcl | None,
    facts: dict[str, bool | str],
    heads: Heads,
    *,
    may_write: bool,
) -> Iterator[Finding]:
    side = plan.production
    try:
        client = _open(side)
    except RowferryError as error:
        yield problem(error)
        return
    with closing(client):
        findings = check_bucket_exists(client, side)
        yield from findings
        if find_problems(findings):
            return
        if not may_write:
            yield note(f"not checked, since a check would write: whether {side.bucket} takes objects and copies")
            yield from check_public_url(plan, None, partial(_find_production_key, client, plan))
            return
        left: list[Finding] = []
        with written_probe(client, side, left) as probe:
            yield from _try_writing(probe, plan, source_key, heads)
            if probe.copy_keeps_tags is not None:
                facts[COPY_KEEPS_TAGS] = probe.copy_keeps_tags
            if probe.is_written:
                facts[NO_TAGS] = probe.lacks_tags
                findings = list(_try_properties(ShapedProbe(probe, plan, acl), plan, client))
                yield from findings
                if probe.copy_keeps_tags and side.tags == "none":
                    facts[COPY_LEAVES_TAGS_OUT] = not find_problems(findings)
        yield from left


def _try_properties(shaped: ShapedProbe, plan: Plan, client: ObjectClient) -> Iterator[Finding]:
    """Write probes that are what the plan says of objects, and fetch one as the public would."""
    findings = list(shaped.check())
    yield from findings
    if not find_problems(findings):
        yield from check_public_url(plan, shaped.probe, partial(_find_production_key, client, plan))


def _find_production_key(client: ObjectClient, plan: Plan) -> str | None:
    """Return the key of an object below `to`, if there is one."""
    return find_any_object(client, plan.production, object_prefixes(plan.parts, "production"))


def _try_writing(probe: Probe, plan: Plan, source_key: str | None, heads: Heads) -> Iterator[Finding]:
    side = plan.production
    try:
        is_same = probe.write()
    except ObjectError as error:
        yield refuse(side, error, "written and read", "s3:PutObject and s3:GetObject")
        return
    if not is_same:
        yield problem(f"the production bucket {side.bucket} returned other bytes than were written to {probe.key!r}")
        return
    yield fine(f"the production bucket {side.bucket} can be written and read (production: written)")
    if plan.server_side:
        yield from _try_copying(probe, plan, source_key)
    elif probe.has_false_md5:
        what = "the production server's ETags look like the MD5 of the bytes and are not: no object would pass"
        yield problem(what, f"use a server whose ETags are, or one that says why not by {ENCRYPTED[0]}")
    of_parts: ObjectError | None = None
    try:
        probe.write_parts(server_side=plan.server_side)
    except ObjectError as error:
        of_parts = error
    yield from check_sizes(probe, plan, of_parts)
    yield from _report_lost_properties(probe)
    if probe.lacks_tags and side.tags == "copy":
        yield from _count_tagged(plan, heads)
    yield from _report_conditions(probe)


def _try_copying(probe: Probe, plan: Plan, source_key: str | None) -> Iterator[Finding]:
    """Copy a legacy object beside the probe, then the probe itself, whose properties are known."""
    try:
        if source_key is not None:
            probe.copy_from(plan.legacy, source_key)
            yield fine("the production server copies from the legacy bucket by itself")
        pin = probe.copy_itself()
    except ObjectError as error:
        what = (
            f"the production server cannot copy from the legacy bucket {plan.legacy.bucket} ({summarise_error(error)})"
        )
        cure = find_cure(refusal_of(error), plan.production)
        level = part if cure is not None and cure.case in OF_THE_SAMPLE else problem
        yield level(what, explain(plan.production, error))
        return
    if pin != "honoured":
        what = f"x-amz-copy-source-if-match is {pin} by CopyObject"
        yield note(f"{what}: an object that changes while it is copied is noticed only afterwards")


def _report_lost_properties(probe: Probe) -> Iterator[Finding]:
    for operation, lost in probe.lost.items():
        if lost:
            yield note(f"does not come back as written after {operation}: {', '.join(lost)}")
    kept = [operation for operation, lost in probe.lost.items() if not lost]
    if kept:
        properties = "metadata, tags" if TAGGING.keys() <= probe.properties.keys() else "metadata"
        yield fine(f"{properties} and content headers come back after {', '.join(kept)}")


def _count_tagged(plan: Plan, heads: Heads) -> Iterator[Finding]:
    """Yield how many sampled objects have tags, which the production server does not take."""
    tagged = sum(bool(read_tag_count(seen)) for seen in heads.values())
    remedy = cure_of("no-tags", plan.production)
    if tagged:
        yield part(f"{tagged:,} of {count(len(heads), 'sampled object has', 'sampled objects have')} tags", remedy)
    else:
        yield note("the production server has no tags: a legacy object that has some will fail", remedy)


def _report_conditions(probe: Probe) -> Iterator[Finding]:
    results = ", ".join(f"{operation} {outcome}" for operation, outcome in probe.conditions.items())
    without = [operation for operation, outcome in probe.conditions.items() if outcome != "honoured"]
    yield note(f"If-None-Match, by operation: {results}{UNPROTECTED if without else ''}")


def _open(side: Side) -> ObjectClient:
    return open_object_client(side, max_in_flight=CONNECTIONS, deadline=DEADLINE)
