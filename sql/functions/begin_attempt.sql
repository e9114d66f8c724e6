-- rowferry.begin_attempt(batch_id bigint, requeues integer, worker_id text)
--   Records an attempt at a claimed batch and returns its id, its number (1 for the first that counts)
--   and how many attempts before it ended with the death of their worker.
--   To be called on an autocommit connection of its own, so that the record outlives a crash.
--   Writes: batch_attempt. Called by: rowferry_worker/claim.py.
create or replace function rowferry.begin_attempt(batch_id bigint, requeues integer, worker_id text)
returns table (attempt_id bigint, number integer, crashes integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    select
        1 + count(*) filter (where a.verdict is null or a.verdict in ('RETRY', 'DONE', 'ERROR')),
        count(*) filter (where a.verdict is null)
    into strict number, crashes
    from rowferry.batch_attempt as a
    where a.batch_id = $1 and a.requeues = $2;

    insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id)
    values ($1, $2, number, $3)
    returning id into strict attempt_id;
    return next;
end;
$$;
