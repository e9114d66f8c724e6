-- Gives the unclaimed batches of a queue that wait or are in ERROR the choices of a new pass: batches in ERROR are due
-- again, and entries that will be read again (`read_again`) are no longer counted, nor those whose rows had changed or
-- were deleted. Returns how many batches. `p_label`: only those of these entries; null: of all. A switch that the
-- choices do not name is taken back. No requeue: the setting rowferry.renews keeps
-- rowferry.reset_requeued_batch from recording one.
-- Writes: batch_queue, entry_failure. Called by: rowferry_enqueue/enqueue.py, rowferry_enqueue/passes.py,
-- rowferry_enqueue/listing_batches.py.
create or replace function rowferry.renew_batches(
    p_migration_id bigint, p_queue_name text, p_choices jsonb, p_label text default null
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ids bigint [];
begin
    perform set_config('rowferry.renews', 'on', true);
    with free as (
        select q.id
        from rowferry.batch_queue as q
        where
            q.migration_id = p_migration_id
            and q.queue_name = p_queue_name
            and q.status in ('INIT', 'ERROR')
            and q.payload ? 'read_again'
            and p_choices ? 'read_again'
            and (p_label is null or q.payload ->> 'entries' = p_label)
        for update skip locked
    ),

    renewed as (
        update rowferry.batch_queue as q
        set
            status = 'INIT',
            payload = (q.payload - array['switched_at', 'skew', 'is_begun']) || p_choices
            || case when q.payload ? 'unsettled' then '{"unsettled": null}'::jsonb else '{}' end,
            migrated = case when q.payload -> 'read_again' ? 'migrated' then 0 else q.migrated end,
            kept = case when q.payload -> 'read_again' ? 'kept' then 0 else q.kept end,
            changed = 0,
            deleted = 0
        from free
        where q.id = free.id
        returning q.id
    )

    select coalesce(array_agg(r.id), '{}') into strict v_ids
    from renewed as r;
    perform set_config('rowferry.renews', 'off', true);
    delete from rowferry.entry_failure as f
    where f.batch_id = any(v_ids) and f.outcome in ('changed', 'deleted');
    return cardinality(v_ids);
end;
$$;
