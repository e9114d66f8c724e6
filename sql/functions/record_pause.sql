-- Trigger: records when a migration or one of its queues is paused or resumed, whoever does it.
-- Writes: event. Called by: any change of migration.paused_at or queue.paused_at.
create or replace function rowferry.record_pause()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_is_migration constant boolean := tg_table_name = 'migration';
    v_row constant jsonb := to_jsonb(new);
    v_was_paused constant boolean := tg_op = 'UPDATE' and (to_jsonb(old) ->> 'paused_at') is not null;
    v_kind constant text := case when new.paused_at is null then 'resumed' else 'paused' end;
begin
    if v_was_paused = (new.paused_at is not null) then
        return null;
    end if;
    insert into rowferry.event (migration_id, queue_name, kind, text)
    values (
        (v_row ->> case when v_is_migration then 'id' else 'migration_id' end)::bigint,
        case when not v_is_migration then v_row ->> 'name' end,
        v_kind,
        case when v_is_migration then v_kind else format('queue %s: %s', v_row ->> 'name', v_kind) end
        || coalesce(': ' || (v_row ->> 'pause_reason'), '')
    )
    on conflict do nothing;
    return null;
end;
$$;

create or replace trigger migration_record_pause
after update of paused_at on rowferry.migration
for each row
when (old.paused_at is distinct from new.paused_at)
execute function rowferry.record_pause();

create or replace trigger queue_record_pause
after insert or update of paused_at on rowferry.queue
for each row
execute function rowferry.record_pause();
