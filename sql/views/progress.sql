-- One row a migration and queue: batches by status, entries by outcome, the rate of the last minute, the time left.
-- `entries` = `waiting` + the seven outcomes of finished work; `rate_1m` is in entries a second, `rate_10m` is the same
-- for the last ten minutes; `time_left` goes by that, null while nothing moves. The other columns are the sums of those
-- of rowferry.table_progress; `done_share`: see rowferry.share_done.
create or replace view rowferry.progress as
with counted as (
    select
        t.migration_id,
        t.queue_name,
        rowferry.sum_counts(t.counts) as counts,
        min(t.started_at) as started_at,
        max(t.finished_at) as finished_at
    from rowferry.batch_tally as t
    group by t.migration_id, t.queue_name
    having sum((t.counts).batches) > 0
),

in_hand as (
    select
        h.migration_id,
        h.queue_name,
        sum(h.entries)::bigint as entries
    from rowferry.in_hand as h
    group by h.migration_id, h.queue_name
)

select
    c.migration_id,
    m.name as migration,
    c.queue_name,
    (c.counts).*,
    c.started_at,
    c.finished_at,
    coalesce(h.entries, 0) as in_hand,
    coalesce(r.rate_1m, 0) as rate_1m,
    coalesce(r.rate_10m, 0) as rate_10m,
    case
        when r.rate_10m > 0
            then make_interval(secs => ((c.counts).waiting - coalesce(h.entries, 0)) / r.rate_10m)
    end as time_left,
    rowferry.share_done(
        (c.counts).entries, (c.counts).waiting, coalesce(h.entries, 0), (c.counts).unsettled
    ) as done_share
from counted as c
inner join rowferry.migration as m on c.migration_id = m.id
left join in_hand as h on c.migration_id = h.migration_id and c.queue_name = h.queue_name
left join rowferry.rates as r on c.migration_id = r.migration_id and c.queue_name = r.queue_name;
