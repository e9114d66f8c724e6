select
    sum(batches_init) as "INIT",
    sum(batches_done) as "DONE",
    sum(batches_error) as "ERROR"
from rowferry.progress
where migration = ${migration:sqlstring}
