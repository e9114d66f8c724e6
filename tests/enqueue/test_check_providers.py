"""The provider of a plan is one that is known, and a check signs for its region."""

import pytest

from rowferry.errors import PlanError
from support.entries.checks import problems
from support.entries.migration import Migration


def test_a_provider_that_is_not_known_is_no_plan(migration: Migration) -> None:
    migration.plan["production"]["provider"] = "mini"
    with pytest.raises(
        PlanError, match=r'`production.provider` is "mini" \(did you mean minio\?\): write one of "aws", '
    ):
        migration.read_plan()


def test_check_signs_for_the_region_of_the_provider_where_the_plan_names_none(migration: Migration) -> None:
    migration.plan["production"]["provider"] = "r2"
    assert any('the region "auto" is wrong' in each for each in problems(migration))
    migration.plan["production"]["region"] = "us-east-1"
    assert problems(migration) == []
