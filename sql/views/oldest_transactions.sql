-- The age in seconds of the oldest transaction that keeps VACUUM in this database from removing dead rows: one row for
-- rowferry's own sessions (`of` is rowferry), one for all others (others). `seconds` is null where PostgreSQL hides
-- it: see rowferry.measure_transactions.
create or replace view rowferry.oldest_transactions as
select
    t.of,
    t.seconds
from rowferry.measure_transactions() as t;
