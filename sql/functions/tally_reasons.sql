-- rowferry.tally_reasons()
--   Trigger: adds the reasons of a batch in ERROR to their tally, and subtracts those that it had. A row at a time, so
--   that a verdict that is not ERROR costs nothing. It only appends, as rowferry.tally_batches does; every 500th row
--   compacts the tally.
--   Writes: reason_tally. Called by: any change of a batch of batch_queue that has reasons, or had some.
create or replace function rowferry.tally_reasons()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_added bigint;
    v_last_id bigint;
begin
    insert into rowferry.reason_tally (
        migration_id, queue_name, outcome, reason, entries, batches, choosing, last_failed_at, example_key, example_error
    )
    select
        q.migration_id,
        q.queue_name,
        r.outcome,
        r.reason,
        q.sign * r.entries,
        q.sign,
        case when q.chooses then q.sign else 0 end,
        case when q.sign = 1 then r.last end,
        case when q.sign = 1 then r.key end,
        case when q.sign = 1 then r.error end
    from (
        values
        (1, new.migration_id, new.queue_name, new.payload ? 'on_conflict', new.reasons),
        (-1, old.migration_id, old.queue_name, old.payload ? 'on_conflict', old.reasons)
    ) as q (sign, migration_id, queue_name, chooses, reasons)
    cross join lateral jsonb_to_recordset(q.reasons) as r (
        outcome text, reason text, entries bigint, last timestamptz, key text, error text
    );
    get diagnostics v_added = row_count;
    if v_added > 0 then
        v_last_id := currval('rowferry.reason_tally_id_seq');
        if v_last_id / 500 > (v_last_id - v_added) / 500 then
            perform rowferry.compact_tally(
                'reason_tally', case when v_last_id % 32000 < 500 then 0 else v_last_id - 1000 end
            );
        end if;
    end if;
    return null;
end;
$$;

create or replace trigger batch_queue_reasons_inserted
after insert on rowferry.batch_queue
for each row
when (new.reasons is not null)
execute function rowferry.tally_reasons();

create or replace trigger batch_queue_reasons_updated
after update on rowferry.batch_queue
for each row
when (new.reasons is not null or old.reasons is not null)
execute function rowferry.tally_reasons();

create or replace trigger batch_queue_reasons_deleted
after delete on rowferry.batch_queue
for each row
when (old.reasons is not null)
execute function rowferry.tally_reasons();
