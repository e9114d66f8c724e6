-- rowferry.begin_attempt(batch_id bigint, requeues integer, worker_id text)
--   Records an attempt at a claimed batch and returns its id, its number (1 for the first that counts)
--   and how many attempts before it ended with the death of their worker.
--   To be called on an autocommit connection of its own, so that the record outlives a crash.
--   Writes: batch_attempt. Called by: rowferry_worker/claim.py.
create or replace function rowferry.begin_attempt(batch_id bigint, requeues integer, worker_id text)
returns table (attempt_id bigint, number integer, crashes integer)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    with past as (
        select
            count(*) filter (where a.verdict is null or a.verdict in ('RETRY', 'DONE', 'ERROR')) as counted,
            count(*) filter (where a.verdict is null) as crashes
        from rowferry.batch_attempt as a
        where a.batch_id = $1 and a.requeues = $2
    ),

    begun as (
        insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id)
        select $1, $2, past.counted + 1, $3 from past
        returning id, number
    )

    select begun.id, begun.number, past.crashes::integer from begun cross join past;
$$;
