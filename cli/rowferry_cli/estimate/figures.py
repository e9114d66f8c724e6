"""Puts an estimate together: totals with their ranges, hours and dollars. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import ceil, inf, sqrt
from statistics import mean, stdev
from typing import Any

from rowferry.keys import ObjectKeys
from rowferry.plan import ObjectPrefix, Plan
from rowferry.s3.listings.keys import PAGE_KEYS
from rowferry.s3.providers import find_provider, list_providers
from rowferry.s3.results import read_tag_count
from rowferry_cli.estimate.requests import LIST, count_entry
from rowferry_cli.estimate.sample import CountedEntries, SeenObject
from rowferry_worker.properties.tags import ANNOUNCES

UNITS = {"egress": 10**9, "reads": 1000, "writes": 1000}
"""How many bytes or requests a price of docs/providers.md is for."""
READS = ("HeadObject", "GetObject", "GetObjectTagging", "GetObjectAcl")
"""Operations that providers charge as reads; all others are writes."""
IN_FLIGHT = 16
"""Objects that a worker is taken to have in flight; it begins with 64, and keeps as many as make it faster."""
OF_PROCESS = 1400
"""Requests that one process sends in a second: two for each of 700 small objects, by docs/internals/measurements.md."""
OF_SERVER = 3500
"""That a side takes where the plan says nothing: the writes a second that Amazon S3 promises for one prefix."""
SLOWER = 2
"""A write is taken to need so many times as long as a look, which alone is timed."""
Z = 1.96
"""Standard errors that hold 95 % of a normal distribution to both sides."""
UNSEEN = 3.0
"""At 95 %, at most 3/n of all are unlike each of n (Hanley and Lippman-Hand, "If Nothing Goes Wrong, Is Everything All
Right?", 1983): the upper bounds reckon with so many, each like the largest that was seen."""

Interval = dict[str, float]
"""`estimate`, `low` and `high`, which hold 95 %; of an exact number, all three are equal."""
Numbers = Mapping[str, float]
Stratum = tuple[int, Sequence[Counter[str]]]
"""How many entries a table has, and what some of them cost."""


def choose_prices(plan: Plan) -> dict[str, tuple[str, float]]:
    """Return whose price is taken for `egress`, `reads` and `writes`, and the dollars for one byte or request.

    It is that of the side's provider, or Amazon's where that is not known.
    """
    chosen: dict[str, tuple[str, float]] = {}
    for name, unit in UNITS.items():
        provider = find_provider(plan.production if name == "writes" else plan.legacy)
        if provider is None or getattr(provider, name) is None:
            provider = list_providers()["aws"]
        chosen[name] = provider.title, getattr(provider, name) / unit
    return chosen


def make_estimate(
    plan: Plan,
    counted: Sequence[CountedEntries],
    seen: Mapping[ObjectKeys, SeenObject],
    latency: Numbers,
    limits: Numbers,
) -> dict[str, Any]:
    """Return the estimate as a document for scripts; people read it as a table.

    `latency`: seconds of a HEAD by side; `limits`: worker `processes`, and `bytes_per_second` of the link.
    """
    legacy = [head for head, _ in seen.values() if head is not None]
    asks_tags = not any(read_tag_count(each) or each.headers.get("server") == ANNOUNCES for each in legacy)
    prices, strata = choose_prices(plan), list[Stratum]()
    for table in counted:
        named = [[seen[keys] for keys in objects] for objects in table.chosen]
        strata.append((table.count, [count_entry(plan, table.part, each, asks_tags=asks_tags) for each in named]))
    objects = {name: sum_up(strata, [name]) for name in ("all", "missing", "existing", "tagged", "in_parts")}
    listed = sum(ceil(table.count / PAGE_KEYS) for table in counted if isinstance(table.part, ObjectPrefix))
    strata.append((1, [+Counter({LIST: 3 * listed})]))  # once to cut batches, and then each batch with its first key
    names = sorted({name for _, costs in strata for cost in costs for name in cost if " " in name})
    egress = sum_up(strata, ["egress_bytes"])
    charged = {
        "reads": sum_up(strata, [name for name in names if name.endswith(READS)]),
        "writes": sum_up(strata, [name for name in names if not name.endswith(READS)]),
    }
    # A HEAD for each object where the server ignores If-None-Match.
    charged["reads"]["high"] += objects["all"]["high"]
    dollars = {name: _add({**charged, "egress": egress}[name], times=price) for name, (_, price) in prices.items()}
    requests: dict[str, dict[str, int]] = {"legacy": {}, "production": {}}
    for side, operation in map(str.split, names):
        requests[side][operation] = round(sum_up(strata, [f"{side} {operation}"])["estimate"])
    entries = sum(table.count for table in counted)
    return {
        "migration": plan.name,
        "processes": limits["processes"],
        "entries": entries,
        "tables": {table.part.label: table.count for table in counted},
        "sample": {"objects": len(seen), "unusable": sum(table.chosen.count(()) for table in counted)},
        "objects": objects,
        "bytes": sum_up(strata, ["bytes"]),
        "egress_bytes": egress,
        "requests": {"total": _add(*charged.values()), **charged, **requests},
        "latency_seconds": latency,
        "seconds": _estimate_seconds(plan, requests, latency, limits, entries, egress["high"]),
        "costs": {**dollars, "total": _add(*dollars.values())},
        "notes": [f"{table.part.label} has more objects than were listed" for table in counted if not table.is_whole],
        "next": "rowferry migrate --dry-run",
        "prices": {name: whose for name, (whose, _) in prices.items()},
    }


def sum_up(strata: Sequence[Stratum], names: Collection[str]) -> Interval:
    """Return the total of some names over all entries."""
    total = variance = unseen = 0.0
    for count, costs in strata:
        values = [sum(cost[name] for name in names) for cost in costs] or [0]
        left = max(0.0, 1 - len(costs) / count) if count else 0.0
        spread = stdev(values) if len(values) > 1 else mean(values)
        total += count * mean(values)
        variance += left * (count * spread) ** 2 / len(values)
        unseen += min(1.0, UNSEEN / len(values)) * left * count * max(*values, 1)
    half = Z * sqrt(variance)
    return {"estimate": total, "low": max(0.0, total - half), "high": total + half + unseen}


def _estimate_seconds(
    plan: Plan, requests: Mapping[str, Numbers], latency: Numbers, limits: Numbers, entries: int, egress_bytes: float
) -> dict[str, Any]:
    """Return how long it takes at the limits, of which the narrowest is named, and at the measured latency."""
    bounds = {
        "the link": egress_bytes / limits["bytes_per_second"],
        "the CPU of workers": sum(sum(sent.values()) for sent in requests.values()) / limits["processes"] / OF_PROCESS,
        "max_rows_per_second": entries / (plan.database.max_rows_per_second or inf),
    }
    at_latency = bounds["the link"]
    for side in (plan.legacy, plan.production):
        sent = requests[side.name]
        bounds[f"requests to {side.name}"] = sum(sent.values()) / (side.max_requests_per_second or OF_SERVER)
        slow = sum(number if name in READS else SLOWER * number for name, number in sent.items())
        at_latency += slow * latency[side.name] / IN_FLIGHT / limits["processes"]
    bound = max(bounds, key=lambda name: bounds[name])
    return {"at_limits": bounds[bound], "at_latency": max(at_latency, bounds[bound]), "bound": bound}


def _add(*intervals: Interval, times: float = 1.0) -> Interval:
    """Return the sum; the bounds are added, which is wider than need be where the errors are independent."""
    return {key: times * sum(each[key] for each in intervals) for key in ("estimate", "low", "high")}
