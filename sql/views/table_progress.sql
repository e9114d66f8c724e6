-- One row a migration, queue and table: batches by status, entries by outcome (rowferry.counts). `label` is the
-- `table.key` of the plan's [[entries]]. `entries` = `waiting` + the seven outcomes of finished work; missing and
-- failed entries of an unfinished batch count as waiting. `unsettled`: those that are missing, conflict or failed;
-- `in_error`: these, and those without an outcome, of batches in ERROR.
-- `started_at` and `finished_at`: when the first attempt began and the last batch ended, even if they were pruned or
-- requeued since. `in_hand`: those of the waiting entries that workers have settled inside their batches, their rows
-- and verdicts being still to be written (rowferry.in_hand).
-- `done_share`: see rowferry.share_done; `entries_left`: the waiting entries that no worker has settled. Reads the
-- tally, some hundred rows, not the queue.
create or replace view rowferry.table_progress as
with counted as (
    select
        t.migration_id,
        t.queue_name,
        t.label,
        rowferry.sum_counts(t.counts) as counts,
        min(t.started_at) as started_at,
        max(t.finished_at) as finished_at
    from rowferry.batch_tally as t
    group by t.migration_id, t.queue_name, t.label
    having sum((t.counts).batches) > 0
)

select
    c.migration_id,
    m.name as migration,
    c.queue_name,
    c.label,
    (c.counts).*,
    c.started_at,
    c.finished_at,
    coalesce(h.entries, 0) as in_hand,
    rowferry.share_done(
        (c.counts).entries, (c.counts).waiting, coalesce(h.entries, 0), (c.counts).unsettled
    ) as done_share,
    (c.counts).waiting - coalesce(h.entries, 0) as entries_left
from counted as c
inner join rowferry.migration as m on c.migration_id = m.id
left join rowferry.in_hand as h
    on c.migration_id = h.migration_id and c.queue_name = h.queue_name and c.label is not distinct from h.label;
