-- Gives items of a queue that wait already their new content, by `id`, and returns a row for each id that waits:
-- whether its content was the same, and whether it is in a batch in ERROR. An item waits that the next attempt at its
-- batch would read: not one that is settled in a batch which others keep in ERROR. `p_items` as of
-- rowferry.enqueue_items.
-- A claimed batch is waited for, up to `p_wait`: then its item is done, or can be replaced. So the older content is
-- never written after the newer one. Where they are equal, nothing is locked.
-- Batches that were created at one of `p_own`, by this call of the enqueuer itself, are only searched for `p_again`.
-- Raises lock_not_available where a worker is busy with an item for longer than `p_wait`.
-- Writes: batch_queue. Called by: rowferry_enqueue/items.py.
create or replace function rowferry.replace_items(
    p_migration_id bigint,
    p_queue text,
    p_items jsonb,
    p_own timestamptz [] default '{}',
    p_again text [] default '{}',
    p_wait interval default '60 s'
)
returns table (id text, is_same boolean, is_in_error boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_lock_timeout text := current_setting('lock_timeout');
    -- By id: looked up a million times where a million items wait, whatever the planner makes of a join.
    v_new jsonb := (
        select coalesce(jsonb_object_agg(n.item ->> 'id', n.item), '{}')
        from jsonb_array_elements(p_items) as n (item)
        where jsonb_typeof(n.item -> 'id') = 'string'
    );
    v_locked bigint[] := '{}';
    v_others bigint[];
    v_ids text[];
    v_same boolean[];
    v_in_error boolean[];
begin
    perform set_config('lock_timeout', (extract(epoch from p_wait) * 1000)::integer::text, true);
    loop
        -- Again after each lock: what the worker has finished is gone, and what it put back is in another batch.
        select
            coalesce(array_agg(distinct w.batch_id) filter (where not w.is_same), '{}'),
            array_agg(w.id),
            array_agg(w.is_same),
            array_agg(w.status = 'ERROR')
        into v_others, v_ids, v_same, v_in_error
        from (
            select
                q.id as batch_id,
                q.status,
                i.item ->> 'id' as id,
                v_new -> (i.item ->> 'id') = i.item as is_same
            from rowferry.batch_queue as q
            cross join lateral jsonb_array_elements(q.payload -> 'items') as i (item)
            cross join lateral (
                select coalesce(nullif(q.payload -> 'unsettled', 'null'), nullif(q.payload -> 'only', 'null')) as ids
            ) as meant
            where
                q.migration_id = p_migration_id
                and q.queue_name = p_queue
                and q.status in ('INIT', 'ERROR')
                and q.payload ? 'items'
                and (q.created_at <> all (p_own) or p_again <> '{}')
                and v_new ? (i.item ->> 'id')
                and (q.created_at <> all (p_own) or i.item ->> 'id' = any (p_again))
                and (meant.ids is null or meant.ids ? (i.item ->> 'id'))
        ) as w;
        exit when v_others <@ v_locked;

        perform q.id
        from rowferry.batch_queue as q
        where q.id = any (v_others)
        order by q.id
        for update;
        v_locked := v_locked || v_others;
    end loop;
    perform set_config('lock_timeout', v_lock_timeout, true);

    update rowferry.batch_queue as q
    set payload = q.payload || jsonb_build_object('items', (
        select jsonb_agg(coalesce(v_new -> (i.item ->> 'id'), i.item) order by i.number)
        from jsonb_array_elements(q.payload -> 'items') with ordinality as i (item, number)
    ))
    where q.id = any (v_others);

    return query
    select
        w.id,
        bool_and(w.is_same),
        bool_or(w.is_in_error)
    from unnest(v_ids, v_same, v_in_error) as w (id, is_same, is_in_error)
    group by w.id;
end;
$$;
