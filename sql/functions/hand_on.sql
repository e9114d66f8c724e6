-- Puts the entries that a claimed batch has settled in each queue that is next to its own (rowferry.queue.next), as one
-- batch due now; returns how many batches. None where nothing was settled. The new payload is what the batch's own says
-- of its entries, with what rowferry.queue.payload says of the next queue; where no plan has said anything of that one,
-- its retries read only what the last attempt has left (`unsettled`).
-- `p_is_whole`: the range itself; else the ids `p_settled` alone (`only`), of the range before a time budget cut it.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch.
-- Writes: batch_queue. Called by: rowferry.finish_batch, whose settings its plan needs.
create or replace function rowferry.hand_on(p_batch_id bigint, p_settled text [], p_is_whole boolean)
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_payload jsonb;
    v_source jsonb;
    v_added integer;
begin
    perform rowferry.check_claim(p_batch_id);
    if cardinality(p_settled) = 0 then
        return 0;
    end if;

    -- Decompressed, once: each operator on the stored one would do so again.
    select q.payload || '{}' into strict v_payload from rowferry.batch_queue as q where q.id = p_batch_id;
    select
        coalesce(jsonb_object_agg(p.key, p.value), '{}')
        || case
            when v_payload ? 'last_before' then jsonb_build_object('last', v_payload -> 'last_before')
            else '{}'
        end
        || case
            when v_payload ? 'items'
                then jsonb_build_object('items', (
                    select coalesce(jsonb_agg(i.value order by i.place), '[]')
                    from jsonb_array_elements(v_payload -> 'items') with ordinality as i (value, place)
                    where i.value ->> 'id' in (select s.id from unnest(p_settled) as s (id))
                ))
            when p_is_whole then '{}'
            else jsonb_build_object('only', to_jsonb(p_settled))
        end
    into v_source
    from jsonb_each(v_payload) as p
    where p.key in ('entries', 'first', 'last', 'since', 'objects', 'size', 'side', 'prefix', 'only');

    insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, run_after)
    select
        q.migration_id,
        n.name,
        v_source
        || case when o.planned is null then '{"unsettled": null}'::jsonb else '{}' end
        || coalesce(o.payload, '{}'),
        cardinality(p_settled),
        q.max_attempts,
        -- Behind what waits already, where each claim finds it at once.
        clock_timestamp()
    from rowferry.batch_queue as q
    inner join rowferry.queue as k on q.migration_id = k.migration_id and q.queue_name = k.name
    cross join lateral (
        select
            u.name,
            min(u.place) as place
        from unnest(k.next) with ordinality as u (name, place)
        group by u.name
    ) as n
    left join rowferry.queue as o on k.migration_id = o.migration_id and n.name = o.name
    where q.id = p_batch_id
    order by n.place;
    get diagnostics v_added = row_count;
    return v_added;
end;
$$;
