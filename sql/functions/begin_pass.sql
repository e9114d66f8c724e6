-- Begins a pass over entries whose rows stay, and returns it; no row, and nothing is written, while batches of an
-- earlier pass wait in the queue. It takes the rows that changed since the watermark of the pass before, or all where
-- that lies ahead. Its own watermark is a minute before the oldest transaction that is open now, for clocks that differ
-- and objects that are written after their rows; it stays what it was where not `p_is_whole`, or where nothing tells
-- when one began. The caller reads the table afterwards, in the same transaction.
-- Writes: pass. Called by: rowferry_enqueue/passes.py.
create or replace function rowferry.begin_pass(
    p_migration_id bigint, p_label text, p_is_whole boolean, p_queue_name text
)
returns setof rowferry.pass
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_margin constant interval := '1 minute';
    v_now constant timestamptz := clock_timestamp();
    v_last rowferry.pass;
    v_open record;
    v_prepared text;
begin
    if exists (
        select from rowferry.batch_queue as q
        where
            q.migration_id = p_migration_id
            and q.queue_name = p_queue_name
            and q.status = 'INIT'
            and q.payload ->> 'entries' = p_label
    ) then
        return;
    end if;
    select p.* into v_last
    from rowferry.pass as p
    where p.migration_id = p_migration_id and p.label = p_label
    order by p.number desc
    limit 1;

    -- Every open transaction holds a lock on its own virtual id, which all roles see; when it began, only some do.
    perform pg_stat_clear_snapshot();
    select
        min(a.xact_start) as began_at,
        min(a.pid) filter (
            where a.xact_start is null and coalesce(a.state, 'disabled') = 'disabled'
        ) as hidden_pid,
        (array_agg(a.pid order by a.xact_start))[1] as pid
    into v_open
    from pg_stat_activity as a
    inner join pg_locks as l on a.pid = l.pid
    where
        a.datname = current_database()
        and a.usesysid is not null
        and a.pid <> pg_backend_pid()
        and l.locktype = 'virtualxid'
        and l.mode = 'ExclusiveLock'
        and l.granted;
    select min(x.gid) into v_prepared
    from pg_prepared_xacts as x
    where x.database = current_database();

    return query
    insert into rowferry.pass (migration_id, label, number, began_at, since, watermark, held_back_by)
    values (
        p_migration_id,
        p_label,
        coalesce(v_last.number, 0) + 1,
        v_now,
        case when v_last.watermark <= v_now then v_last.watermark end,
        case
            when p_is_whole and v_open.hidden_pid is null and v_prepared is null
                then least(v_now, v_open.began_at) - v_margin
            else v_last.watermark
        end,
        case
            when v_prepared is not null
                then format('the prepared transaction "%s": commit it or roll it back', v_prepared)
            when v_open.hidden_pid is not null
                then format(
                    'transactions whose begin the owner of the schema rowferry may not see, such as that of process '
                    '%s: grant pg_read_all_stats to %s', v_open.hidden_pid, current_user
                )
            when v_open.began_at < v_now - v_margin
                then format(
                    'a transaction that is open since %s (process %s)',
                    date_trunc('second', v_open.began_at), v_open.pid
                )
        end
    )
    returning *;
end;
$$;
