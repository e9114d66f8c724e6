-- Trigger: records when a migration or a queue is paused or resumed, whoever does it. One that is resumed loses its
-- reason to be paused.
-- Writes: event, the row itself. Called by: any change of migration.paused_at or queue.paused_at between null and a
-- time.
create or replace function rowferry.record_pause()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_row constant jsonb := to_jsonb(new);
    v_kind constant text := case when new.paused_at is null then 'resumed' else 'paused' end;
begin
    insert into rowferry.event (migration_id, queue_name, kind, text)
    select
        coalesce(v_row ->> 'migration_id', v_row ->> 'id')::bigint,
        q.name,
        v_kind,
        coalesce('queue ' || q.name || ': ', '') || v_kind
        || case when v_kind = 'paused' then coalesce(': ' || (v_row ->> 'pause_reason'), '') else '' end
    from (select case when v_row ? 'migration_id' then v_row ->> 'name' end as name) as q
    on conflict do nothing;
    if v_kind = 'resumed' then
        return jsonb_populate_record(new, '{"pause_reason": null, "paused_by_worker": false}');
    end if;
    return new;
end;
$$;

create or replace trigger migration_pause
before update of paused_at on rowferry.migration
for each row
when ((new.paused_at is null) <> (old.paused_at is null))
execute function rowferry.record_pause();

create or replace trigger queue_pause
before update of paused_at on rowferry.queue
for each row
when ((new.paused_at is null) <> (old.paused_at is null))
execute function rowferry.record_pause();

-- After the insert: before it, `insert ... on conflict do update` of a queue that is there would fire it too.
create or replace trigger queue_first_pause
after insert on rowferry.queue
for each row
when (new.paused_at is not null)
execute function rowferry.record_pause();
