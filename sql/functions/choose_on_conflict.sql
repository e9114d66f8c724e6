-- Says what waiting batches do where a different production object exists: fail, keep, older or overwrite. Returns how
-- many did something else before. `p_batch_ids`: of these batches; null: of all batches of the migration.
-- Leaves out batches that a worker has claimed, and batches of queues that know no such choice.
-- Raises invalid_parameter_value for another word, and for overwrite where rows stay and the application may have been
-- switched: what production holds then may be its own.
-- Writes: batch_queue. Called by: rowferry.requeue, rowferry_enqueue/waiting_batches.py.
create or replace function rowferry.choose_on_conflict(
    p_on_conflict text, p_migration_id bigint default null, p_batch_ids bigint [] default null
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_changed bigint;
    v_switched text;
begin
    if p_on_conflict is null or p_on_conflict not in ('fail', 'keep', 'older', 'overwrite') then
        raise invalid_parameter_value using
        message = format('on_conflict is %L: write fail, keep, older or overwrite', p_on_conflict);
    end if;

    with free as (
        select
            q.id,
            q.migration_id,
            q.payload ? 'read_again' as stays
        from rowferry.batch_queue as q
        where
            q.status = 'INIT'
            and q.payload ? 'on_conflict'
            and q.payload ->> 'on_conflict' <> p_on_conflict
            and (p_migration_id is null or q.migration_id = p_migration_id)
            and (p_migration_id is not null or p_batch_ids is not null)
            and (p_batch_ids is null or q.id = any(p_batch_ids))
        for update skip locked
    ),

    chosen as (
        update rowferry.batch_queue as q
        set payload = q.payload || jsonb_build_object('on_conflict', p_on_conflict)
        from free as f
        where q.id = f.id
        returning f.migration_id, f.stays
    )

    select
        count(*),
        min(m.name) filter (where c.stays and coalesce(m.switched_at, m.moment_at) is not null)
    into v_changed, v_switched
    from chosen as c
    inner join rowferry.migration as m on c.migration_id = m.id;

    if v_switched is not null and p_on_conflict = 'overwrite' then
        raise invalid_parameter_value using message = format(
            'the application of migration "%s" may have been switched, so overwrite would replace what it has written '
            'to production: choose keep or older', v_switched
        );
    end if;
    return v_changed;
end;
$$;
