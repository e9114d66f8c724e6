-- rowferry.begin_attempts(batch_ids bigint[], requeues integer[], worker_id text)
--   Records an attempt at each of several claimed batches, none of which has a crash behind it, and returns their ids
--   and numbers in the order of `batch_ids`.
--   To be called on an autocommit connection of its own, so that the records outlive a crash.
--   Writes: batch_attempt. Called by: rowferry_worker/claim.py.
create or replace function rowferry.begin_attempts(batch_ids bigint [], requeues integer [], worker_id text)
returns table (attempt_id bigint, number integer)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
    with begun as (
        insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id)
        select
            b.batch_id,
            b.requeues,
            1 + past.counted,
            $3
        from unnest($1, $2) as b (batch_id, requeues)
        cross join lateral (
            select count(*) as counted
            from rowferry.batch_attempt as a
            where
                a.batch_id = b.batch_id and a.requeues = b.requeues
                and (a.verdict is null or a.verdict in ('RETRY', 'DONE', 'ERROR'))
        ) as past
        returning id, batch_id, number
    )

    select
        begun.id,
        begun.number
    from begun
    order by array_position($1, begun.batch_id);
$$;
