-- rowferry.list_reasons(p_batch rowferry.batch_queue)
--   Returns why a batch is in ERROR: an array with an object for each outcome and reason, with its `entries`, when one of
--   them failed last (`last`), and an example (`key`, `error`). Without a key: the batch failed before its entries were
--   read; or it was set to ERROR by hand, and not by an attempt (`parked`), a finished one as well.
--   Writes: nothing; it reads entry_failure. Called by: rowferry.record_reasons.
create or replace function rowferry.list_reasons(p_batch rowferry.batch_queue)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    with listed as (
        select
            f.outcome,
            f.reason,
            count(*) as entries,
            max(f.failed_at) as last,
            (min(array[f.key, f.error])) as example
        from rowferry.entry_failure as f
        where f.batch_id = (p_batch).id and f.outcome in ('missing', 'conflict', 'failed')
        group by f.outcome, f.reason
    ),

    whole as (
        select
            (p_batch).failed - coalesce(sum(l.entries) filter (where l.outcome = 'failed'), 0) as entries,
            (p_batch).finished_at is null or (
                (p_batch).entry_count > 0 and (p_batch).missing + (p_batch).conflict + (p_batch).failed = 0
            ) as is_parked
        from listed as l
    ),

    reasons as (
        select
            l.outcome,
            l.reason,
            l.entries,
            l.last,
            l.example[1] as key,
            l.example[2] as error
        from listed as l
        union all
        select
            'failed' as outcome,
            (p_batch).error as reason,
            w.entries,
            (p_batch).finished_at as last,
            null as key,
            (p_batch).error as error
        from whole as w
        where w.entries > 0 or ((p_batch).entry_count = 0 and (p_batch).finished_at is not null)
        union all
        select
            'parked' as outcome,
            'set to ERROR by hand; `rowferry requeue` puts it back' as reason,
            (p_batch).entry_count - (p_batch).migrated - (p_batch).kept - (p_batch).changed - (p_batch).deleted
            - (p_batch).missing - (p_batch).conflict - (p_batch).failed as entries,
            coalesce((p_batch).started_at, (p_batch).created_at) as last,
            null as key,
            (p_batch).error as error
        from whole as w
        where w.is_parked
    )

    select coalesce(jsonb_agg(to_jsonb(r)), '[]')
    from reasons as r;
$$;
