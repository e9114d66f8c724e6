-- Returns the sums of both.
-- In plpgsql, whose plan the session keeps: below PostgreSQL 18, a function in SQL is planned anew by each statement.
-- Writes: nothing. Called by: the aggregate of rowferry.sum_counts.
create or replace function rowferry.add_counts(p_counts rowferry.counts, p_more rowferry.counts)
returns rowferry.counts
language plpgsql
immutable
strict
parallel safe
as $$
begin
    return row(
        p_counts.batches + p_more.batches,
        p_counts.batches_init + p_more.batches_init,
        p_counts.batches_done + p_more.batches_done,
        p_counts.batches_error + p_more.batches_error,
        p_counts.entries + p_more.entries,
        p_counts.waiting + p_more.waiting,
        p_counts.migrated + p_more.migrated,
        p_counts.kept + p_more.kept,
        p_counts.changed + p_more.changed,
        p_counts.deleted + p_more.deleted,
        p_counts.missing + p_more.missing,
        p_counts.conflict + p_more.conflict,
        p_counts.failed + p_more.failed,
        p_counts.bytes + p_more.bytes,
        p_counts.unsettled + p_more.unsettled,
        p_counts.in_error + p_more.in_error
    )::rowferry.counts;
end;
$$;
