-- Returns what a batch counts, or with `p_sign` -1 what the counts lose without it. Entries that are missing, in
-- conflict or failed count once their batch has ended: until then they are `waiting`, as are all that have no outcome.
-- `unsettled`: those of ended batches that are missing, in conflict or failed; `in_error`: these and those without an
-- outcome, of batches in ERROR.
-- In SQL, and without settings of its own, so that it becomes part of its callers' statements.
-- Writes: nothing. Called by: rowferry.tally_batches, rowferry.recount_batches, rowferry.fail_batch, rowferry report,
-- the views claimed_batches, open_attempts and error_reasons.
create or replace function rowferry.count_batch(p_batch rowferry.batch_queue, p_sign integer)
returns rowferry.counts
language sql
immutable
parallel safe
as $$
    select row(
        p_sign,
        p_sign * ((p_batch).status = 'INIT')::integer,
        p_sign * ((p_batch).status = 'DONE')::integer,
        p_sign * ((p_batch).status = 'ERROR')::integer,
        p_sign * (p_batch).entry_count,
        p_sign * (
            (p_batch).entry_count - (p_batch).migrated - (p_batch).kept - (p_batch).changed - (p_batch).deleted
            - ((p_batch).status <> 'INIT')::integer * ((p_batch).missing + (p_batch).conflict + (p_batch).failed)
        ),
        p_sign * (p_batch).migrated,
        p_sign * (p_batch).kept,
        p_sign * (p_batch).changed,
        p_sign * (p_batch).deleted,
        p_sign * ((p_batch).status <> 'INIT')::integer * (p_batch).missing,
        p_sign * ((p_batch).status <> 'INIT')::integer * (p_batch).conflict,
        p_sign * ((p_batch).status <> 'INIT')::integer * (p_batch).failed,
        p_sign * (p_batch).bytes,
        p_sign * ((p_batch).status <> 'INIT')::integer
        * ((p_batch).missing + (p_batch).conflict + (p_batch).failed),
        p_sign * ((p_batch).status = 'ERROR')::integer
        * ((p_batch).entry_count - (p_batch).migrated - (p_batch).kept - (p_batch).changed - (p_batch).deleted)
    )::rowferry.counts;
$$;
