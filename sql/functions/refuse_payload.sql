-- Trigger: refuses what no worker could read into a small memory, or without an end of its stack: a JSON document of a
-- batch or of a plan with more than 64 levels, or more than 32 MiB as text.
-- Raises invalid_parameter_value.
-- Writes: nothing. Called by: any INSERT or UPDATE of such a payload or plan.
create or replace function rowferry.refuse_payload()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise invalid_parameter_value using message = format(
        'the %s has more than 64 levels, or is larger than 32 MiB: put less in it', tg_argv[0]
    );
end;
$$;

create or replace trigger batch_queue_payload_refusal
before insert or update of payload on rowferry.batch_queue
for each row
when (new.payload @? '$.**{64}' or octet_length(new.payload::text) > 33554432)
execute function rowferry.refuse_payload('payload of a batch');

create or replace trigger migration_plan_refusal
before insert or update of plan on rowferry.migration
for each row
when (new.plan @? '$.**{64}' or octet_length(new.plan::text) > 33554432)
execute function rowferry.refuse_payload('plan');
