-- rowferry.begin_attempts(p_batch_ids bigint[], p_requeues integer[], p_worker_id text, p_reachable_for interval)
--   Records an attempt at each of several claimed batches, as rowferry.begin_attempt does for one, in one round trip and
--   one commit. `p_requeues` has the requeues of each batch. Returns a row for each batch, or fails as a whole.
--   Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
--   Writes: batch_attempt. Called by: rowferry_worker/attempts.py.
create or replace function rowferry.begin_attempts(
    p_batch_ids bigint [], p_requeues integer [], p_worker_id text, p_reachable_for interval default null
)
returns table (
    batch_id bigint,
    attempt_id bigint,
    number integer,
    crashes integer,
    losses integer,
    since_loss interval,
    unclear_for interval
)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_worker(p_worker_id);

    select
        u.batch_id,
        a.attempt_id,
        a.number,
        a.crashes,
        a.losses,
        a.since_loss,
        a.unclear_for
    from unnest(p_batch_ids, p_requeues) as u (batch_id, requeues)
    cross join lateral rowferry.begin_attempt(u.batch_id, u.requeues, p_worker_id, p_reachable_for) as a;
$$;
