"""SQL of a plan may read tables of any name, also such as the parts of our own statements might have."""

import pytest

from support.entries.migration import Migration


@pytest.mark.by_day("groups", "wanted", "free")
@pytest.mark.parametrize(
    "name", ["groups", "blocks", "waiting", "size", "ends", "depths", "bounds", "free", "wanted", "inserted"]
)
def test_a_condition_may_read_a_table_of_any_name(migration: Migration, name: str) -> None:
    migration.execute(f"create table public.{name} (thing bigint)")
    migration.execute(f"insert into public.{name} select * from generate_series(1, 6)")
    migration.plan["entries"][0]["where"] = f"exists (select from {name} as o where o.thing = e.id)"
    migration.given(8, 2)
    migration.execute("delete from rowferry.batch_queue where payload ->> 'first' = '3'")
    (beside_waiting,) = migration.enqueue(2)
    assert beside_waiting.entries == 2
    assert migration.work() == {"migrated": 6}, migration.failures()
    migration.audit(legacy_left=(7, 8))
