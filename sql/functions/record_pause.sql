-- Trigger: a migration or a queue that is paused gets the name of the role that did; one that is resumed loses it, and
-- its reason to be paused. Records the event, whoever does it.
-- Writes: the row itself, event. Called by: any change of migration.paused_at or queue.paused_at between null and a time.
create or replace function rowferry.record_pause()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_is_migration constant boolean := tg_table_name = 'migration';
    v_row jsonb;
    v_kind constant text := case when new.paused_at is null then 'resumed' else 'paused' end;
begin
    new := jsonb_populate_record(new, case
        when new.paused_at is null then '{"pause_reason": null, "paused_by": null, "paused_by_worker": false}'
        else jsonb_build_object('paused_by', session_user)
    end);
    v_row := to_jsonb(new);
    -- An upsert of a queue that is there becomes an update.
    if tg_op = 'INSERT' and exists (
        select from rowferry.queue as q
        where q.migration_id = (v_row ->> 'migration_id')::bigint and q.name = v_row ->> 'name'
    ) then
        return new;
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
    return new;
end;
$$;

create or replace trigger migration_record_pause
before update of paused_at on rowferry.migration
for each row
when ((new.paused_at is null) <> (old.paused_at is null))
execute function rowferry.record_pause();

create or replace trigger queue_record_pause
before update of paused_at on rowferry.queue
for each row
when ((new.paused_at is null) <> (old.paused_at is null))
execute function rowferry.record_pause();

create or replace trigger queue_record_first_pause
before insert on rowferry.queue
for each row
when (new.paused_at is not null)
execute function rowferry.record_pause();
