-- Enqueues of one migration follow one another; whoever pauses it, or works on it, does not wait for them.
select pg_advisory_xact_lock(hashtextextended('rowferry.enqueue ' || %(name)s, 0))
