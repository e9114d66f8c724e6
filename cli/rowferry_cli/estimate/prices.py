"""Whose prices an estimate reckons with."""

from typing import NamedTuple

from rowferry.plan import Plan
from rowferry.s3.providers import find_provider, list_providers

UNITS = {"egress": 10**9, "reads": 1000, "writes": 1000}
"""How many bytes or requests a price is for."""
FALLBACK = "aws"


class Price(NamedTuple):
    """`of_one`: dollars for one byte or request."""

    whose: str
    of_one: float


def choose_prices(plan: Plan, given: tuple[float, ...] | None) -> dict[str, Price]:
    """Return the price of `egress`, `reads` and `writes`.

    `given` by a person, in this order; None: egress and reads are those of the legacy provider, writes those of
    production, and what is not known of them is Amazon's.
    """
    if given is not None:
        prices = zip(UNITS.items(), given, strict=True)
        return {name: Price("--prices", price / unit) for (name, unit), price in prices}
    legacy, production = find_provider(plan.legacy), find_provider(plan.production)
    chosen: dict[str, Price] = {}
    for name, unit in UNITS.items():
        provider = production if name == "writes" else legacy
        if provider is None or getattr(provider, name) is None:
            provider = list_providers()[FALLBACK]
        chosen[name] = Price(provider.title, getattr(provider, name) / unit)
    return chosen
