-- Two hosts may run `rowferry init` at once: the second waits here until the first has committed.
select pg_advisory_xact_lock(hashtextextended('rowferry.schema', 0))
