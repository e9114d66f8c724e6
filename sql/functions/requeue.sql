-- rowferry.requeue(batch_id bigint, error_like text, migration text)
--   Puts batches in ERROR back in the queue and returns how many: the one named, those whose error or whose entries'
--   errors match the LIKE pattern, those of the migration of this name; what is null excludes none.
--   The same as `update rowferry.batch_queue set status = 'INIT' where status = 'ERROR' and ...`.
--   Writes: batch_queue (and, through its trigger, entry_failure). Called by: rowferry requeue.
create or replace function rowferry.requeue(
    batch_id bigint default null, error_like text default null, migration text default null
)
returns bigint
language sql
set search_path = pg_catalog, pg_temp
as $$
    with requeued as (
        update rowferry.batch_queue as q
        set status = 'INIT'
        where
            q.status = 'ERROR'
            and ($1 is null or q.id = $1)
            and ($3 is null or q.migration_id = (select m.id from rowferry.migration as m where m.name = $3))
            and (
                $2 is null
                or q.error like $2
                or exists (
                    select from rowferry.entry_failure as f
                    where f.batch_id = q.id and (f.error like $2 or f.reason like $2)
                )
            )
        returning q.id
    )

    select count(*) from requeued;
$$;
