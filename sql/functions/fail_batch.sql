-- rowferry.fail_batch(batch_id bigint, attempt_id bigint, verdict text, wait interval, error text)
--   Writes the verdict of an attempt that has no outcomes to show: its batch killed its workers, or failed as a whole.
--   ERROR: the entries that were not settled before count as failed. RETRY: back to INIT after `wait`.
--   RELEASED: the same, and the attempt does not count. Somebody may have emptied the ledger meanwhile: the batch gets
--   its verdict all the same.
--   Raises object_not_in_prerequisite_state where this transaction has not claimed the batch.
--   Writes: batch_queue, batch_attempt. Called by: rowferry_worker/verdict.py, in the transaction of the claim.
create or replace function rowferry.fail_batch(
    batch_id bigint, attempt_id bigint, verdict text, wait interval, error text
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select rowferry.check_claim($1);

    update rowferry.batch_attempt as a
    set verdict = $3, error = $5, finished_at = clock_timestamp()
    where a.id = $2 and a.batch_id = $1 and coalesce(a.verdict in ('RELEASED', 'LOST'), true);

    update rowferry.batch_queue as q
    set
        status = case $3 when 'ERROR' then 'ERROR' else 'INIT' end,
        attempts = case $3 when 'RELEASED' then q.attempts else least(coalesce(a.number, 1), q.max_attempts) end,
        run_after = case $3 when 'ERROR' then q.run_after else clock_timestamp() + $4 end,
        started_at = a.started_at,
        finished_at = case $3 when 'ERROR' then clock_timestamp() end,
        worker_id = a.worker_id,
        error = $5,
        failed = case $3
            when 'ERROR'
                then q.entry_count - q.migrated - q.kept - q.changed - q.deleted - q.missing - q.conflict
            else q.failed
        end
    from (values ($2)) as tried (attempt_id)
    left join rowferry.batch_attempt as a on tried.attempt_id = a.id and a.batch_id = $1
    where q.id = $1;
$$;
