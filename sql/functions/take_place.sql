-- Takes one of the `max_claimed` places of a queue until the transaction ends; false where all of them are taken. A
-- place is an advisory lock of two integers, 1919907686 ("rowf") and 1024 * queue + place, counted from 0: it dies with
-- its session as the claim does, and `rollback to savepoint` gives it back. Batches whose attempt began before the
-- limit was set or lowered, at `p_limited_at`, may have no place: as many fewer are given out while live workers hold
-- them. Sessions begin at different places, so that a queue that is nearly full is not searched from its full end.
-- Writes: nothing. Called by: rowferry.claim_batch.
create or replace function rowferry.take_place(
    p_queue_id integer, p_max_claimed integer, p_limited_at timestamptz default null
)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_class constant integer := 1919907686;
    v_places integer := p_max_claimed;
begin
    if p_limited_at is not null then
        with earlier as materialized (
            select
                a.id,
                a.batch_id,
                a.worker_id
            from rowferry.batch_attempt as a
            where a.finished_at is null and a.started_at < p_limited_at
        )

        select v_places - count(*) into strict v_places
        from earlier as e
        inner join rowferry.batch_queue as q on e.batch_id = q.id
        inner join rowferry.queue as k on q.migration_id = k.migration_id and q.queue_name = k.name
        inner join rowferry.worker as w on e.worker_id = w.id
        where
            k.id = p_queue_id
            and q.status = 'INIT'
            and w.stopped_at is null
            and w.last_seen_at > statement_timestamp() - interval '30 seconds'
            and not exists (select from rowferry.batch_attempt as l where l.batch_id = e.batch_id and l.id > e.id);
    end if;

    for v_turn in 0..v_places - 1 loop
        if pg_try_advisory_xact_lock(v_class, 1024 * p_queue_id + (pg_backend_pid() + v_turn) % v_places) then
            return true;
        end if;
    end loop;
    return false;
end;
$$;
