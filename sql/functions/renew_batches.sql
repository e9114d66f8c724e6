-- rowferry.renew_batches(migration_id bigint, queue_name text, choices jsonb)
--   Gives the batches of a queue that wait or are in ERROR, and are in nobody's hands, the choices of a new pass: those
--   in ERROR are due again, and what they will read again is no longer counted. Returns how many they are.
--   Only queues whose batches read entries again (`read_again` in their payload) are renewed: verify, revert.
--   Writes: batch_queue (and, through its trigger, entry_failure). Called by: rowferry_enqueue/enqueue.py.
create or replace function rowferry.renew_batches(migration_id bigint, queue_name text, choices jsonb)
returns bigint
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    with free as (
        select q.id
        from rowferry.batch_queue as q
        where
            q.migration_id = $1
            and q.queue_name = $2
            and q.status in ('INIT', 'ERROR')
            and q.payload ? 'read_again'
        for update skip locked
    ),

    renewed as (
        update rowferry.batch_queue as q
        set
            status = 'INIT',
            payload = q.payload || $3,
            migrated = case when q.payload -> 'read_again' ? 'migrated' then 0 else q.migrated end,
            kept = case when q.payload -> 'read_again' ? 'kept' then 0 else q.kept end
        from free
        where q.id = free.id
        returning q.id
    )

    select count(*) from renewed;
$$;
