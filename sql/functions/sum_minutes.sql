-- rowferry.sum_minutes()
--   Adds to rowferry.finished_minute what was finished in the minutes after its last one, ten of them at a time, until
--   two minutes ago: a verdict is committed right after its time is taken, and one that takes longer is missing in the
--   curves. Does nothing while another transaction does the same. Never fails, and waits for no lock longer than 0.2 s:
--   a heartbeat must not be late for a curve. What could not be added is added by a later call.
--   Writes: finished_minute. Called by: rowferry.heartbeat.
create or replace function rowferry.sum_minutes()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
-- A migration that is being deleted is locked until that is committed.
set lock_timeout = '200ms'
as $$
declare
    v_end constant timestamptz := date_bin('1 minute', now() - interval '2 minutes', 'epoch');
    v_last timestamptz;
    v_is_ahead boolean;
    v_from timestamptz;
begin
    v_last := (select max(s.minute) from rowferry.finished_minute as s);
    v_is_ahead := coalesce(v_last > clock_timestamp(), false);
    if (v_last >= v_end - interval '1 minute' and not v_is_ahead)
        or not pg_try_advisory_xact_lock(hashtextextended('rowferry.finished_minute', 0))
    then
        return;
    end if;

    -- The server's clock was set back, or another server with another clock took over.
    if v_is_ahead then
        delete from rowferry.finished_minute where minute >= v_end;
    end if;

    -- Minutes in which nothing was finished are passed over by the index.
    v_from := date_bin('1 minute', (
        select min(q.finished_at)
        from rowferry.batch_queue as q
        where q.finished_at >= coalesce(
            (select max(s.minute) + interval '1 minute' from rowferry.finished_minute as s), '-infinity'
        )
    ), 'epoch');

    insert into rowferry.finished_minute (
        migration_id, queue_name, minute, batches, entries, migrated, kept, changed, deleted, missing, conflict, failed,
        bytes
    )
    select
        q.migration_id,
        q.queue_name,
        date_bin('1 minute', q.finished_at, 'epoch'),
        count(*),
        sum(q.entry_count),
        sum(q.migrated),
        sum(q.kept),
        sum(q.changed),
        sum(q.deleted),
        sum(q.missing),
        sum(q.conflict),
        sum(q.failed),
        sum(q.bytes)
    from rowferry.batch_queue as q
    where q.finished_at >= v_from and q.finished_at < least(v_from + interval '10 minutes', v_end)
    group by q.migration_id, q.queue_name, date_bin('1 minute', q.finished_at, 'epoch')
    on conflict do nothing;
exception
    when others then
        raise warning 'rowferry: the minutes that are over were not summed up: %', sqlerrm;
end;
$$;
