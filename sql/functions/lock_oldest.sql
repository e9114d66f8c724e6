-- rowferry.lock_oldest(p_line rowferry.due_line)
--   Locks the oldest due batch of a line that no other transaction has locked, from the line's oldest on, and returns it;
--   null where none is free.
--   Writes: nothing; the row lock is the lease. Called by: rowferry.claim_batch, whose settings its plan needs.
create or replace function rowferry.lock_oldest(p_line rowferry.due_line)
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
        and q.migration_id = p_line.migration_id
        and q.queue_name = p_line.queue_name
        -- Walk past finished batches only once.
        and (q.run_after, q.id) >= (p_line.run_after, p_line.batch_id)
        and q.run_after <= statement_timestamp()
    order by q.run_after, q.id
    limit 1
    for update skip locked;
    return v_claimed;
end;
$$;
