-- Raises insufficient_privilege where another session is this worker: it holds the lock of its ledger, as a live worker
-- does, behind PgBouncer only during a transaction of its ledger. A free lock is taken until the transaction
-- ends.
-- Writes: nothing. Called by: rowferry.begin_attempt, rowferry.end_attempt, rowferry.lose_attempts,
-- rowferry.heartbeat, rowferry.update_worker.
create or replace function rowferry.check_worker(p_worker_id text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if not pg_try_advisory_xact_lock(hashtextextended('rowferry.ledger ' || p_worker_id, 0)) then
        raise insufficient_privilege using
        message = format('another session is worker %s', p_worker_id);
    end if;
end;
$$;
