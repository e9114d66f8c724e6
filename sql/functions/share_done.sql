-- Returns the settled share of entries, 0 to 1, for every screen; null without entries. It counts waiting entries that
-- workers have settled inside their batches, except at least one: while any waits, it is less than 1.
-- Entries that are missing, conflict or failed (`p_unsettled`) are not settled.
-- Writes: nothing. Called by: the views table_progress and progress.
create or replace function rowferry.share_done(
    p_entries bigint, p_waiting bigint, p_in_hand bigint, p_unsettled bigint
)
returns double precision
language sql
immutable
parallel safe
as $$
    select
        (p_entries - p_waiting - p_unsettled + least(p_in_hand, greatest(p_waiting - 1, 0)))::double precision
        / nullif(p_entries, 0);
$$;
