-- The aggregate of rowferry.add_counts: the sums of counts, null without any.
-- Writes: nothing. Called by: rowferry.tally_batches, rowferry.compact_tally, rowferry.recount_batches, the views of
-- progress.
create or replace aggregate rowferry.sum_counts(rowferry.counts) (
    sfunc = rowferry.add_counts,
    stype = rowferry.counts,
    parallel = safe
);
