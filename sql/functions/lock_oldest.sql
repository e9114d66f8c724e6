-- Locks the oldest due batch of a line that no other transaction has locked, from this place on, and returns it; null
-- where none is free.
-- Writes: nothing; the row lock is the lease. Called by: rowferry.claim_batch, whose settings its plan needs.
create or replace function rowferry.lock_oldest(
    p_migration_id bigint, p_queue_name text, p_since timestamptz, p_since_id bigint
)
returns rowferry.batch_queue
language plpgsql
as $$
declare
    v_claimed rowferry.batch_queue;
begin
    select q.* into v_claimed
    from rowferry.batch_queue as q
    where
        q.status = 'INIT'
        and q.migration_id = p_migration_id
        and q.queue_name = p_queue_name
        and (q.run_after, q.id) >= (p_since, p_since_id)
        and q.run_after <= statement_timestamp()
    order by q.run_after, q.id
    limit 1
    for update skip locked;
    return v_claimed;
end;
$$;
