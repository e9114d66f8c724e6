-- Writes the verdict of an attempt: DONE, ERROR, RETRY (back to INIT after `p_wait`, the attempt counts) or RELEASED
-- (back to INIT after `p_wait`, the attempt does not count).
-- `p_migrated`, `p_kept` and `p_bytes` are this attempt's; `p_read_ids` are the entries that it read; the five arrays
-- are parallel, one element for each entry that was neither migrated nor kept. The counts of the batch then balance:
-- entry_count is the sum of its seven outcomes. Entries whose outcome the payload names in `read_again` were read
-- again, and are not counted twice. `unsettled` in the payload gets the ids that are left, and `unread` the first id of
-- a range where the first attempt with outcomes did not read it. Settled entries are handed on to the queues that are
-- next (rowferry.hand_on): all that the batch means where it is DONE and nothing of it was settled before; else what
-- this attempt has settled, and no earlier one.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch, no_data_found where the
-- attempt belongs to another batch or has its verdict.
-- Writes: batch_queue, batch_attempt, entry_failure. Called by: rowferry_worker/batch/verdict.py, in the transaction
-- that holds the claim and has updated the rows.
create or replace function rowferry.finish_batch(
    p_batch_id bigint,
    p_attempt_id bigint,
    p_verdict text,
    p_wait interval,
    p_error text,
    p_migrated integer,
    p_kept integer,
    p_bytes bigint,
    p_read_ids text [],
    p_entry_ids text [],
    p_keys text [],
    p_outcomes text [],
    p_reasons text [],
    p_errors text []
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_attempt record;
    v_before record;
    v_migrated integer;
    v_kept integer;
    v_settled text [];
    v_outcomes jsonb := jsonb_build_object('migrated', p_migrated, 'kept', p_kept);
    -- Failures of the batch: changed, deleted, missing, conflict, failed.
    v_counts integer [] := array[0, 0, 0, 0, 0];
begin
    -- The claim is checked as in rowferry.check_claim, by the statement that reads the batch. The payload is decompressed
    -- once: each operator on the stored one would do so again.
    with own as materialized (
        select
            q.migration_id,
            q.queue_name,
            q.migrated,
            q.kept,
            q.changed + q.deleted + q.missing + q.conflict + q.failed > 0 as has_failures,
            q.payload || '{}' as payload
        from rowferry.batch_queue as q
        where
            q.id = p_batch_id
            and q.status = 'INIT'
            and (select rowferry.seal_claim(s.key, p_batch_id) from rowferry.claim_key as s) = any(
                string_to_array(current_setting('rowferry.claims', true), ' ')
            )
        for update skip locked
    )

    select
        q.migrated,
        q.kept,
        q.has_failures,
        q.payload -> 'unsettled' as unsettled,
        case
            when jsonb_typeof(q.payload -> 'unsettled') is distinct from 'array' then q.payload -> 'read_again'
        end as read_again,
        case
            when
                q.payload ->> 'first' <> all(p_read_ids)
                and q.payload ? 'entries' and not q.payload ?| array['only', 'objects']
                and q.migrated + q.kept = 0 and not q.has_failures
                then jsonb_build_object('unread', q.payload -> 'first')
        end as unread,
        q.migrated + q.kept = 0
        -- Of a batch that its time budget has cut, entries behind its new end may be settled.
        and not q.payload ?| array['is_begun', 'last_before'] as has_settled_nothing,
        -- The parts of an upload are no entries: the batch of its object is what others go on with.
        coalesce(k.next <> '{}', false) and not q.payload ? 'upload' as hands_on
    into v_before
    from own as q
    left join rowferry.queue as k on q.migration_id = k.migration_id and q.queue_name = k.name;
    if not found then
        perform rowferry.refuse_claim(p_batch_id);
    end if;

    -- The counts that stay from earlier attempts. An entry that was migrated once, and is kept when it is read again,
    -- counts as migrated.
    v_migrated := v_before.migrated;
    v_kept := v_before.kept;
    if v_before.read_again ? 'migrated' then
        v_migrated := least(v_before.migrated, p_kept);
        v_kept := -v_migrated;
    elsif v_before.read_again ? 'kept' then
        v_kept := 0;
    end if;

    if cardinality(p_outcomes) > 0 then
        v_outcomes := v_outcomes || coalesce((
            select jsonb_object_agg(o.outcome, o.entries)
            from (
                select
                    u.outcome,
                    count(*) as entries
                from unnest(p_outcomes) as u (outcome)
                where p_verdict in ('DONE', 'ERROR') or u.outcome in ('changed', 'deleted')
                group by u.outcome
            ) as o
        ), '{}');
    end if;
    update rowferry.batch_attempt as a
    set verdict = p_verdict, error = p_error, finished_at = clock_timestamp(), outcomes = v_outcomes
    where a.id = p_attempt_id and a.batch_id = p_batch_id and coalesce(a.verdict in ('RELEASED', 'LOST'), true)
    returning a.number, a.started_at, a.worker_id into strict v_attempt;

    if v_before.has_failures or cardinality(p_entry_ids) > 0 then
        -- Entries that were read again have a new outcome; changed and deleted entries keep theirs.
        delete from rowferry.entry_failure as f
        where
            f.batch_id = p_batch_id
            and (f.outcome in ('missing', 'conflict', 'failed') or f.entry_id = any(p_read_ids));

        insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt)
        -- The table may have got two rows with one id since it was enqueued.
        select distinct on (u.entry_id) p_batch_id, u.entry_id, u.key, u.outcome, u.reason, u.error, v_attempt.number
        from unnest(p_entry_ids, p_keys, p_outcomes, p_reasons, p_errors) as u (entry_id, key, outcome, reason, error);

        select array[
            count(*) filter (where e.outcome = 'changed'),
            count(*) filter (where e.outcome = 'deleted'),
            count(*) filter (where e.outcome = 'missing'),
            count(*) filter (where e.outcome = 'conflict'),
            count(*) filter (where e.outcome = 'failed')
        ]
        into strict v_counts
        from rowferry.entry_failure as e
        where e.batch_id = p_batch_id;
    end if;

    -- Before the payload says what this attempt leaves.
    if v_before.hands_on then
        v_settled := array(
            select e.id
            from unnest(p_read_ids) with ordinality as e (id, place)
            left join unnest(p_entry_ids) as o (id) on e.id = o.id
            where
                o.id is null
                and (jsonb_typeof(v_before.unsettled) is distinct from 'array' or v_before.unsettled ? e.id)
            order by e.place
        );
        perform rowferry.hand_on(p_batch_id, v_settled, p_verdict = 'DONE' and v_before.has_settled_nothing);
    end if;

    update rowferry.batch_queue as q
    set
        status = case p_verdict when 'DONE' then 'DONE' when 'ERROR' then 'ERROR' else 'INIT' end,
        attempts = case p_verdict when 'RELEASED' then q.attempts else v_attempt.number end,
        run_after = case when p_verdict in ('RETRY', 'RELEASED') then clock_timestamp() + p_wait else q.run_after end,
        started_at = v_attempt.started_at,
        finished_at = case when p_verdict in ('DONE', 'ERROR') then clock_timestamp() end,
        worker_id = v_attempt.worker_id,
        error = p_error,
        -- Null may stay where nothing is left: a large payload is not written once more for that.
        payload = case
            when v_before.unsettled is null or (p_verdict = 'DONE' and v_before.unsettled = 'null')
                then coalesce(q.payload || v_before.unread, q.payload)
            else q.payload || coalesce(v_before.unread, '{}') || jsonb_build_object('unsettled', array(
                select o.id
                from unnest(p_entry_ids, p_outcomes) as o (id, outcome)
                where o.outcome in ('missing', 'conflict', 'failed')
            ))
        end,
        migrated = v_migrated + p_migrated,
        kept = v_kept + p_kept,
        bytes = q.bytes + p_bytes,
        changed = v_counts[1],
        deleted = v_counts[2],
        missing = v_counts[3],
        conflict = v_counts[4],
        failed = v_counts[5],
        entry_count = v_migrated + p_migrated + v_kept + p_kept
        + v_counts[1] + v_counts[2] + v_counts[3] + v_counts[4] + v_counts[5]
    where q.id = p_batch_id;
end;
$$;
