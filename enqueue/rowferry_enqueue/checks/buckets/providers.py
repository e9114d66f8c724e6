"""Says what is known of a side's provider, where it matters to the plan."""

from collections.abc import Iterator

from rowferry.plan import LegacySide, Plan, ProductionSide
from rowferry.s3.cures import cure_of
from rowferry.s3.providers import Provider, find_provider
from rowferry_enqueue.checks.finding import Finding, note


def check_providers(plan: Plan) -> Iterator[Finding]:
    """Yield a note for each side whose provider has a limit that the plan meets."""
    for side in plan.sides:
        provider = find_provider(side)
        met = list(_meet_limits(plan, side, provider)) if provider is not None else []
        if provider is not None and met:
            recognised = "by its endpoint" if side.provider is None else "by the plan"
            limits, remedies = zip(*met, strict=True)
            words = f"{side.name} is {provider.title}, {recognised}: {', '.join(limits)}"
            yield note(f"{words}; what is tried here goes before that", "; ".join(filter(None, remedies)))


def _meet_limits(plan: Plan, side: LegacySide | ProductionSide, provider: Provider) -> Iterator[tuple[str, str]]:
    """Yield each limit that the plan meets, and what to type."""
    if not isinstance(side, ProductionSide):
        if provider.tags is False and plan.production_side is not None and plan.production_side.tags == "copy":
            yield "no tags", cure_of("no-tags", plan.production_side)
        return
    if provider.tags is False and side.tags != "none":
        yield "no tags", cure_of("no-tags", side)
    if provider.acl is False and side.acl is not None:
        yield "no ACLs of objects", cure_of("acl-refused", side)
    if provider.conditional_put is False:
        yield "no If-None-Match", ""
    server_side = plan.has_both_sides and plan.server_side
    if server_side and provider.copy is False:
        yield "no CopyObject", cure_of("no-copy", side)
    elif server_side and provider.copy_parts is False:
        yield "no UploadPartCopy, of which large objects are made", cure_of("parts-by-copy", side)
