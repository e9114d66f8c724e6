-- Cuts what a claimed listing has found into ranges, puts a batch for each in the queue, and returns how many batches
-- and objects. `p_keys` are keys of the listing's range in the order of their bytes, which its caller checks. `p_next`
-- is the key after them, with which a new listing continues, before those ranges in the queue; null: the listing has
-- come to its end.
-- In the payload, `size` is the most objects of a range, and `limit`, if it is there, of the whole listing. Where it
-- has `beside_waiting`, keys that another batch covers which is INIT or in ERROR are left out, and no range reaches
-- across such a batch.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch, invalid_parameter_value
-- where it is not a listing.
-- Writes: batch_queue. Called by: rowferry_worker/batch/sources/listing.py, in the transaction of the claim.
create or replace function rowferry.add_ranges(p_batch_id bigint, p_keys text [], p_next text default null)
returns table (batches bigint, entries bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_listing rowferry.batch_queue;
    v_last constant text := p_keys[cardinality(p_keys)];
    v_due_at constant timestamptz := clock_timestamp();
    v_left integer;
    v_next_id bigint;
begin
    perform rowferry.check_claim(p_batch_id);
    select q.* into strict v_listing from rowferry.batch_queue as q where q.id = p_batch_id;
    if v_listing.payload ->> 'objects' is distinct from 'listing' then
        raise invalid_parameter_value using message = format('batch %s is no listing', p_batch_id);
    end if;

    -- First in the queue, but behind what waits already, where each claim finds it at once.
    if p_next is not null then
        insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, run_after)
        values (
            v_listing.migration_id,
            v_listing.queue_name,
            v_listing.payload || jsonb_build_object('first', p_next),
            0,
            v_listing.max_attempts,
            v_due_at
        )
        returning id into strict v_next_id;
        update rowferry.batch_queue as q
        set payload = q.payload || jsonb_build_object('last', v_last)
        where q.id = p_batch_id and v_last is not null;
    end if;

    with waiting as materialized (
        select
            q.payload ->> 'first' as first,
            q.payload ->> 'last' as last
        from rowferry.batch_queue as q
        where
            v_listing.payload ? 'beside_waiting'
            and q.migration_id = v_listing.migration_id
            and q.queue_name = v_listing.queue_name
            and q.status in ('INIT', 'ERROR')
            and q.payload ->> 'entries' = v_listing.payload ->> 'entries'
            and q.id not in (p_batch_id, coalesce(v_next_id, p_batch_id))
    ),

    -- At one key, a range begins before that key and ends after it.
    marks as (
        select
            k.key,
            1 as place,
            0 as step
        from unnest(p_keys) as k (key)
        union all
        select
            w.first,
            0,
            1
        from waiting as w
        union all
        select
            w.last,
            2,
            -1
        from waiting as w
        where w.last is not null
    ),

    depths as (
        select
            m.key,
            m.place,
            sum(m.step) over (order by m.key collate "C", m.place rows unbounded preceding) as depth,
            count(*) filter (where m.place = 0)
                over (order by m.key collate "C", m.place rows unbounded preceding) as stretch
        from marks as m
    ),

    free as (
        select
            d.key,
            d.stretch,
            row_number() over (partition by d.stretch order by d.key collate "C") as position
        from depths as d
        where d.place = 1 and d.depth = 0
        order by d.key collate "C"
        limit (v_listing.payload ->> 'limit')::integer
    ),

    added as (
        insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, run_after)
        select
            v_listing.migration_id,
            v_listing.queue_name,
            (v_listing.payload - array['beside_waiting', 'limit'])
            || jsonb_build_object('objects', 'range', 'first', c.first, 'last', c.last),
            c.entry_count,
            v_listing.max_attempts,
            v_due_at
        from (
            select
                min(f.key collate "C") as first,
                max(f.key collate "C") as last,
                count(*)::integer as entry_count
            from free as f
            group by f.stretch, (f.position - 1) / (v_listing.payload ->> 'size')::integer
        ) as c
        order by c.first collate "C"
        returning entry_count
    )

    select
        count(*),
        coalesce(sum(a.entry_count), 0)::bigint
    into strict batches, entries
    from added as a;

    v_left := (v_listing.payload ->> 'limit')::bigint - entries;
    if v_left = 0 then
        delete from rowferry.batch_queue as q where q.id = v_next_id;
    elsif v_left is not null then
        update rowferry.batch_queue as q
        set payload = q.payload || jsonb_build_object('limit', v_left)
        where q.id = v_next_id;
    end if;
    return next;
end;
$$;
