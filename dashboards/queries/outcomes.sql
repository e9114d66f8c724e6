select
    sum(migrated) as "migrated",
    sum(kept) as "kept",
    sum(changed) as "changed",
    sum(deleted) as "deleted",
    sum(missing) as "missing",
    sum(conflict) as "conflict",
    sum(failed) as "failed"
from rowferry.progress
where migration = ${migration:sqlstring}
