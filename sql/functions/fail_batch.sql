-- Writes the verdict of an attempt without outcomes: its batch killed its workers, or failed as a whole.
-- ERROR: entries that were not settled before count as failed. RETRY: back to INIT after `p_wait`.
-- RELEASED: the same, and the attempt does not count. The batch gets its verdict even if an operator has emptied the
-- ledger meanwhile.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch.
-- Writes: batch_queue, batch_attempt. Called by: rowferry_worker/batch/verdict.py, in the transaction of the claim.
create or replace function rowferry.fail_batch(
    p_batch_id bigint, p_attempt_id bigint, p_verdict text, p_wait interval, p_error text
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select rowferry.check_claim(p_batch_id);

    update rowferry.batch_attempt as a
    set verdict = p_verdict, error = p_error, finished_at = clock_timestamp()
    where a.id = p_attempt_id and a.batch_id = p_batch_id and coalesce(a.verdict in ('RELEASED', 'LOST'), true);

    update rowferry.batch_queue as q
    set
        status = case p_verdict when 'ERROR' then 'ERROR' else 'INIT' end,
        attempts = case p_verdict when 'RELEASED' then q.attempts else least(coalesce(a.number, 1), q.max_attempts) end,
        run_after = case p_verdict when 'ERROR' then q.run_after else clock_timestamp() + p_wait end,
        started_at = a.started_at,
        finished_at = case p_verdict when 'ERROR' then clock_timestamp() end,
        worker_id = a.worker_id,
        error = p_error,
        failed = case p_verdict
            when 'ERROR' then (rowferry.count_batch(q, 1)).waiting - q.missing - q.conflict
            else q.failed
        end
    from (values (p_attempt_id)) as tried (attempt_id)
    left join rowferry.batch_attempt as a on tried.attempt_id = a.id and a.batch_id = p_batch_id
    where q.id = p_batch_id;
$$;
