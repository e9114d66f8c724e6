-- Trigger: a truncated queue has nothing to tally.
-- Writes: batch_tally. Called by: any TRUNCATE of batch_queue.
create or replace function rowferry.forget_tally()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    truncate rowferry.batch_tally;
    return null;
end;
$$;

create or replace trigger batch_queue_tally_truncated
after truncate on rowferry.batch_queue
for each statement
execute function rowferry.forget_tally();
