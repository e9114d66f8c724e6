-- rowferry.finish_batch(batch_id, attempt_id, verdict, wait, error, migrated, kept, bytes, read_ids,
--                       entry_ids, keys, outcomes, reasons, errors)
--   Writes the verdict of an attempt: DONE, ERROR, RETRY (back to INIT after `wait`, the attempt counts)
--   or RELEASED (back to INIT after `wait`, the attempt does not count).
--   `migrated`, `kept` and `bytes` are this attempt's; `read_ids` are the entries that it read; the five arrays
--   are parallel, one element for each entry that was neither migrated nor kept.
--   The counts of the batch then balance: entry_count is the sum of its seven outcomes. Entries whose outcome the
--   payload names in `read_again` were read again by this attempt, and are not counted twice.
--   Raises object_not_in_prerequisite_state where this transaction has not claimed the batch, no_data_found where the
--   attempt is not the batch's or has its verdict.
--   Writes: batch_queue, batch_attempt, entry_failure. Called by: rowferry_worker/verdict.py,
--   in the transaction that holds the claim and has updated the rows.
create or replace function rowferry.finish_batch(
    batch_id bigint,
    attempt_id bigint,
    verdict text,
    wait interval,
    error text,
    migrated integer,
    kept integer,
    bytes bigint,
    read_ids text [],
    entry_ids text [],
    keys text [],
    outcomes text [],
    reasons text [],
    errors text []
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    attempt rowferry.batch_attempt;
    before record;
begin
    perform rowferry.check_claim($1);

    update rowferry.batch_attempt as a
    set verdict = $3, error = $5, finished_at = clock_timestamp()
    where a.id = $2 and a.batch_id = $1 and coalesce(a.verdict in ('RELEASED', 'LOST'), true)
    returning a.* into strict attempt;

    -- Entries that were read again have a new outcome; those that the application had changed or removed keep theirs.
    delete from rowferry.entry_failure as f
    where
        f.batch_id = $1
        and (f.outcome in ('missing', 'conflict', 'failed') or f.entry_id = any($9));

    if cardinality($10) > 0 then
        insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt)
        -- A table may have come by two rows with one id since it was enqueued.
        select distinct on (u.entry_id) $1, u.entry_id, u.key, u.outcome, u.reason, u.error, attempt.number
        from unnest($10, $11, $12, $13, $14) as u (entry_id, key, outcome, reason, error);
    end if;

    -- What stays counted from earlier attempts. An entry that was migrated once and is kept when it is read again was
    -- migrated.
    select
        case when q.payload -> 'read_again' ? 'migrated' then least(q.migrated, $7) else q.migrated end as migrated,
        case
            when q.payload -> 'read_again' ? 'migrated' then -least(q.migrated, $7)
            when q.payload -> 'read_again' ? 'kept' then 0
            else q.kept
        end as kept
    into strict before
    from rowferry.batch_queue as q
    where q.id = $1;

    update rowferry.batch_queue as q
    set
        status = case $3 when 'DONE' then 'DONE' when 'ERROR' then 'ERROR' else 'INIT' end,
        attempts = case $3 when 'RELEASED' then q.attempts else attempt.number end,
        run_after = case when $3 in ('RETRY', 'RELEASED') then clock_timestamp() + $4 else q.run_after end,
        started_at = attempt.started_at,
        finished_at = case when $3 in ('DONE', 'ERROR') then clock_timestamp() end,
        worker_id = attempt.worker_id,
        error = $5,
        migrated = before.migrated + $6,
        kept = before.kept + $7,
        bytes = q.bytes + $8,
        changed = f.changed,
        deleted = f.deleted,
        missing = f.missing,
        conflict = f.conflict,
        failed = f.failed,
        entry_count = before.migrated + $6 + before.kept + $7 + f.total
    from (
        select
            count(*) as total,
            count(*) filter (where e.outcome = 'changed') as changed,
            count(*) filter (where e.outcome = 'deleted') as deleted,
            count(*) filter (where e.outcome = 'missing') as missing,
            count(*) filter (where e.outcome = 'conflict') as conflict,
            count(*) filter (where e.outcome = 'failed') as failed
        from rowferry.entry_failure as e
        where e.batch_id = $1
    ) as f
    where q.id = $1;
end;
$$;
