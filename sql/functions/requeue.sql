-- Puts batches in ERROR back in the queue and returns how many: one batch, the batches whose error or whose entries'
-- errors match a LIKE pattern (a parked batch by its reason in rowferry.error_reasons), the batches of one migration,
-- of one queue; a null condition excludes none. `p_on_conflict` (keep, older, overwrite or fail): what they do from now
-- on where a different production object exists, and only batches of queues that know this choice. Without it, the same
-- as `update rowferry.batch_queue set status = 'INIT' where status = 'ERROR' and ...`.
-- Raises as rowferry.choose_on_conflict does.
-- Writes: batch_queue (and, through its trigger, entry_failure). Called by: rowferry requeue, rowferry watch, rowferry
-- migrate.
create or replace function rowferry.requeue(
    p_batch_id bigint default null,
    p_error_like text default null,
    p_migration text default null,
    p_queue_name text default null,
    p_on_conflict text default null
)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ids bigint [];
begin
    with requeued as (
        update rowferry.batch_queue as q
        set status = 'INIT'
        where
            q.status = 'ERROR'
            and (p_batch_id is null or q.id = p_batch_id)
            and (p_queue_name is null or q.queue_name = p_queue_name)
            and (p_on_conflict is null or q.payload ? 'on_conflict')
            and (
                p_migration is null
                or q.migration_id = (select m.id from rowferry.migration as m where m.name = p_migration)
            )
            and (
                p_error_like is null
                or q.error like p_error_like
                or (
                    (q.finished_at is null or (q.entry_count > 0 and q.missing + q.conflict + q.failed = 0))
                    and 'set to ERROR by hand; `rowferry requeue` puts it back' like p_error_like
                )
                or exists (
                    select from rowferry.entry_failure as f
                    where f.batch_id = q.id and (f.error like p_error_like or f.reason like p_error_like)
                )
            )
        returning q.id
    )

    select coalesce(array_agg(r.id), '{}') into v_ids
    from requeued as r;
    if p_on_conflict is not null then
        perform rowferry.choose_on_conflict(p_on_conflict, p_batch_ids => v_ids);
    end if;
    return cardinality(v_ids);
end;
$$;
