"""Tables of scenarios: what a server does, what it is asked for, and what must come of each request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from rowferry.errors import ObjectError
from rowferry.s3.operations import Request
from support.s3.clients import Result, ask, facing
from support.s3.said import connections_of
from support.s3.stand_in import Behaviour

Came = bytes | type[ObjectError] | tuple[type[ObjectError], str] | Mapping[str, object] | None
"""A body, the class of an error, that and words of its message, fields of the result, or None: any success."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A client of a new server: what that does with one request after the other, and what comes of those asked."""

    server: Sequence[Behaviour]
    asked: Sequence[tuple[Request, Came]]
    connections: int | None = None
    """How many there are in the end; None: any number."""
    requests: int | None = None
    """How many the server gets; None: any number."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the client."""


def hold_scenarios(scenarios: Mapping[str, Scenario], subtests: pytest.Subtests) -> None:
    """Run each scenario, and hold what comes of it against the table."""
    for name, scenario in scenarios.items():
        with subtests.test(name), facing(*scenario.server, **scenario.settings) as (client, server):
            for request, came in scenario.asked:
                hold_result(ask(client, request), came)
            assert scenario.connections in {None, connections_of(server)}
            assert scenario.requests in {None, len(server.requests)}


def hold_result(got: Result, came: Came) -> None:
    if isinstance(came, bytes):
        assert (got.error, got.body) == (None, came)
    elif isinstance(came, tuple):
        assert type(got.error) is came[0]
        assert came[1] in str(got.error)
    elif isinstance(came, type):
        assert type(got.error) is came
    elif came is None:
        assert got.error is None
    else:
        assert {name: getattr(got, name) for name in came} == came
