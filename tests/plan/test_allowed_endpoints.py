"""A worker's environment may bound where plans send objects: who may enqueue decides the rest."""

import pytest
from msgspec.structs import replace

from rowferry.errors import UsageError
from rowferry.plan import ProductionSide
from rowferry.s3.access.endpoint import refuse_foreign_endpoint
from support.entries.migration import Migration

SIDE = ProductionSide(bucket="pictures", endpoint_url="https://s3.example.com:9000", region="eu")


HERE = "https://s3.example.com:9000"
AT_AWS = replace(SIDE, endpoint_url=None, region="eu-central-1")
ALLOWED = (
    (SIDE, ""),
    (SIDE, HERE),
    (SIDE, f"https://elsewhere.example.com, {HERE}/"),
    (SIDE, f"{HERE}/pictures"),
    (AT_AWS, "https://s3.eu-central-1.amazonaws.com"),
)
FOREIGN = ("http://s3.example.com:9000", "https://s3.example.com", f"{HERE}/other", "https://s3.example")


def test_what_is_allowed_goes_on_and_all_else_is_refused() -> None:
    for side, allowed in ALLOWED:
        refuse_foreign_endpoint(side, {"ROWFERRY_ALLOWED_ENDPOINTS": allowed})
    for allowed in FOREIGN:
        with pytest.raises(UsageError, match="is not among those that ROWFERRY_ALLOWED_ENDPOINTS allows"):
            refuse_foreign_endpoint(SIDE, {"ROWFERRY_ALLOWED_ENDPOINTS": allowed})


def test_a_migration_to_elsewhere_is_set_aside_before_anything_is_sent(migration: Migration) -> None:
    migration.fill(1)
    migration.enqueue()
    ended = migration.run("worker", "--until-empty", ROWFERRY_ALLOWED_ENDPOINTS="https://s3.example.com")
    assert ended.returncode == 2
    assert "is not among those that ROWFERRY_ALLOWED_ENDPOINTS allows" in ended.stderr
    assert migration.statuses() == {"INIT"}
    assert migration.production.listing() == {}
