-- 0001_initial: the tables of rowferry. Functions and views are not here: every `rowferry init` replaces them.

create table rowferry.migration (
    id bigint generated always as identity,
    name text not null,
    plan jsonb not null,
    revision integer not null default 1,
    passes integer not null default 0,
    paused_at timestamptz,
    pause_reason text,
    paused_by_worker boolean not null default false,
    moment_at timestamptz,
    switched_at timestamptz,
    was_switched_at timestamptz,
    switched_back_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint migration_pkey primary key (id),
    constraint migration_name_key unique (name),
    -- As the plan has it: screens and commands to type quote it.
    constraint migration_name_check check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$')
);
comment on table rowferry.migration is
'One named plan: the two sides and the entries. Holds no secret.';
comment on column rowferry.migration.revision is
'Grows when the plan changes, so that workers know when to read it again.';
comment on column rowferry.migration.paused_at is
'Set: no batch of this migration is claimed, claimed batches are finished. Null: it runs. An UPDATE is enough.';
comment on column rowferry.migration.pause_reason is
'Why it is paused, in one sentence. Null: a person paused it without a reason, or it runs. A resume clears it.';
comment on column rowferry.migration.paused_by_worker is
'Whether a worker paused it, since its batches cannot be worked on.';
comment on column rowferry.migration.moment_at is
'Since when the application may be switched, as `rowferry cutover` said first: passes take what it may have written to '
'the production bucket since then for its own. Null: there was no such moment, or it went back.';
comment on column rowferry.migration.switched_at is
'When `rowferry cutover` said that the application may be switched; set once a person has confirmed that it is. Null: '
'it still uses the legacy bucket. Only for entries whose rows stay.';
comment on column rowferry.migration.was_switched_at is
'Since when it may have used the production bucket before it went back. Null: it never went back.';
comment on column rowferry.migration.switched_back_at is
'When it had gone back to the legacy bucket, as `rowferry cutover --switched-back` said last. What it wrote to the '
'production bucket between these two is replaced by what it reads now.';

create table rowferry.row_turn (
    migration_id bigint not null,
    free_at timestamptz not null,
    constraint row_turn_pkey primary key (migration_id),
    constraint row_turn_migration_fkey foreign key (migration_id) references rowferry.migration (id) on delete cascade
) with (fillfactor = 50);
comment on table rowferry.row_turn is
'Until when the rows of a migration have turns under the plan''s max_rows_per_second; one row a migration that has it.';

create table rowferry.pass (
    migration_id bigint not null,
    label text not null,
    number integer not null,
    began_at timestamptz not null default clock_timestamp(),
    since timestamptz,
    watermark timestamptz,
    held_back_by text,
    constraint pass_pkey primary key (migration_id, label, number),
    constraint pass_migration_fkey foreign key (migration_id) references rowferry.migration (id)
);
comment on table rowferry.pass is
'One pass over entries whose rows stay, a row: what it took, and where the next one goes on. Deleting the rows of a '
'label makes its next pass take all rows.';
comment on column rowferry.pass.since is
'It took the rows that changed then or later. Null: all rows.';
comment on column rowferry.pass.watermark is
'The next pass takes the rows that changed then or later: all others were seen by this pass, or by one before. Null: '
'all rows.';
comment on column rowferry.pass.held_back_by is
'What keeps the watermark from being a minute before the pass, in words: an open transaction. Null: nothing.';

create table rowferry.queue (
    id integer generated always as identity,
    migration_id bigint not null,
    name text not null,
    priority integer not null default 0,
    weight double precision not null default 1,
    max_claimed integer,
    paused_at timestamptz,
    pause_reason text,
    next text [] not null default '{}',
    payload jsonb not null default '{}',
    planned jsonb,
    constraint queue_pkey primary key (id),
    -- Its places are locked by two integers: see rowferry.take_place.
    constraint queue_id_check check (id < 2097152),
    constraint queue_name_key unique (migration_id, name),
    constraint queue_migration_fkey foreign key (migration_id) references rowferry.migration (id) on delete cascade,
    constraint queue_name_check check (name ~ '^[a-z][a-z0-9_]{0,62}$'),
    constraint queue_weight_check check (weight between 0.000001 and 1000000),
    constraint queue_max_claimed_check check (max_claimed between 1 and 1023),
    constraint queue_next_check check (
        name <> all(next) and array_position(next, null) is null and array_to_string(next, '') ~ '^[a-z0-9_]*$'
    ),
    constraint queue_payload_check check (jsonb_typeof(payload) = 'object')
);
comment on table rowferry.queue is
'How one queue of one migration is claimed, and what comes after it. No row: the defaults. An UPDATE is enough; it '
'stays until the plan says something else of this queue.';
comment on column rowferry.queue.priority is
'Batches of a queue with a higher one are claimed first, as long as any of them is due.';
comment on column rowferry.queue.weight is
'Its share of the claims, beside the other queues, of all migrations, that have its priority and due batches.';
comment on column rowferry.queue.max_claimed is
'The most batches that workers have claimed at once, on all hosts. Null: no limit. Batches that were claimed under '
'another limit, or none, are finished beside these.';
comment on column rowferry.queue.paused_at is
'Set: no batch of this queue is claimed, claimed batches are finished. Null: it runs. pause_reason: why, as a person '
'said; a resume clears it.';
comment on column rowferry.queue.next is
'The queues that get the entries that this one has settled, in the transaction that settles them.';
comment on column rowferry.queue.payload is
'What batches that are handed on to this queue say beside their entries.';
comment on column rowferry.queue.planned is
'What the plan said of this queue when it was last stored. Null: nothing.';

create table rowferry.event (
    id bigint generated always as identity,
    at timestamptz not null default now(),
    migration_id bigint not null,
    queue_name text,
    kind text not null,
    text text not null,
    constraint event_pkey primary key (id),
    constraint event_migration_fkey foreign key (migration_id) references rowferry.migration (id) on delete cascade,
    constraint event_kind_check check (kind in ('paused', 'resumed', 'requeued'))
);
comment on table rowferry.event is
'What people did to a migration, or a worker for them: one row a transaction, kind and queue. Triggers write it; '
'`rowferry prune` removes old rows.';
comment on column rowferry.event.queue_name is
'Null: all queues of the migration.';
create unique index event_at_idx on rowferry.event (at, migration_id, kind, coalesce(queue_name, ''));

create table rowferry.batch_queue (
    id bigint generated always as identity,
    migration_id bigint not null,
    queue_name text not null,
    status text not null default 'INIT',
    payload jsonb not null,
    entry_count integer not null,
    attempts integer not null default 0,
    max_attempts integer not null default 5,
    requeues integer not null default 0,
    crashes integer not null default 0,
    tried_at timestamptz,
    run_after timestamptz not null default now(),
    created_at timestamptz not null default now(),
    started_at timestamptz,
    finished_at timestamptz,
    worker_id text,
    error text,
    migrated integer not null default 0,
    kept integer not null default 0,
    changed integer not null default 0,
    deleted integer not null default 0,
    missing integer not null default 0,
    conflict integer not null default 0,
    failed integer not null default 0,
    bytes bigint not null default 0,
    constraint batch_queue_pkey primary key (id),
    constraint batch_queue_migration_fkey foreign key (migration_id) references rowferry.migration (id),
    constraint batch_queue_status_check check (status in ('INIT', 'DONE', 'ERROR')),
    constraint batch_queue_queue_name_check check (queue_name ~ '^[a-z][a-z0-9_]{0,62}$'),
    constraint batch_queue_payload_check check (jsonb_typeof(payload) = 'object'),
    constraint batch_queue_entry_count_check check (entry_count >= 0),
    constraint batch_queue_max_attempts_check check (max_attempts > 0),
    constraint batch_queue_done_balances check (
        status <> 'DONE'
        or entry_count = migrated + kept + changed + deleted + missing + conflict + failed
    )
) with (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);
comment on table rowferry.batch_queue is
'One batch a row: INIT, then DONE or ERROR. The row lock of the claim is the lease.';
comment on column rowferry.batch_queue.payload is
'Which entries are meant, and what the queue needs to know beside them. Entries: their label, and first and last id '
'(inclusive, as text); or objects, where no row has them: a listing that is to be cut, or a range of keys; or items, '
'each with an id. `only`: the ids that alone are meant. `unsettled`: the ids that the last attempt left; null: all. '
'`is_begun`: it was split from a batch that had settled some. `unread`: its first id, which no worker has found.';
comment on column rowferry.batch_queue.entry_count is
'Entries in the batch: as counted at enqueue, then as read by the last attempt plus those settled before.';
comment on column rowferry.batch_queue.attempts is
'Attempts that counted since the batch was last put in the queue.';
comment on column rowferry.batch_queue.requeues is
'How often an operator has put the batch back.';
comment on column rowferry.batch_queue.crashes is
'How often the batches that this one was split from have killed their workers. Its own crashes are in batch_attempt.';
comment on column rowferry.batch_queue.tried_at is
'When the first attempt began at the batch that this one was split from, or at this one before it was put back by an '
'operator: what was written to production since may be its copies. Null: batch_attempt says when.';

-- The claim reads only this index. Migration and queue come first, so that a claim never walks past the batches of a
-- paused migration or of a queue that the worker does not serve; then the order of the claim, so that nothing is sorted.
create index batch_queue_due_idx on rowferry.batch_queue (migration_id, queue_name, run_after, id)
where status = 'INIT';
-- For the throughput of the last minute.
create index batch_queue_finished_idx on rowferry.batch_queue (finished_at) where finished_at is not null;
-- For failures, and for the ranges that an enqueue must not hand out again.
create index batch_queue_error_idx on rowferry.batch_queue (migration_id, id) where status = 'ERROR';
-- For the parts that an object waits for: each batch of objects asks, beside any number of others.
create index batch_queue_upload_idx on rowferry.batch_queue ((payload -> 'upload' ->> 'key'))
where status in ('INIT', 'ERROR') and payload ? 'upload';
-- Tells the planner how few tables a queue has. Without it the planner takes every batch for a table of its own and
-- sorts the whole queue to count it: 4 s instead of 1 s for a million batches.
create statistics rowferry.batch_queue_label on (payload ->> 'entries') from rowferry.batch_queue;

create table rowferry.batch_attempt (
    id bigint generated always as identity,
    -- No foreign key: its check would wait for the row lock of the claim.
    batch_id bigint not null,
    requeues integer not null,
    number integer not null,
    worker_id text not null,
    started_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    verdict text,
    error text,
    outcomes jsonb,
    constraint batch_attempt_pkey primary key (id),
    constraint batch_attempt_verdict_check check (verdict in ('DONE', 'RETRY', 'ERROR', 'RELEASED', 'LOST'))
);
comment on table rowferry.batch_attempt is
'The ledger: one attempt at a batch a row, committed before the work starts, so that it outlives a crash.';
comment on column rowferry.batch_attempt.verdict is
'DONE; RETRY; ERROR; RELEASED (given back, costs nothing); LOST (the worker lived, its connection did not); '
'null: running now, or the worker died.';
comment on column rowferry.batch_attempt.outcomes is
'The entries that this attempt brought to an outcome, by outcome. Null: it runs, or ended without a result.';
create index batch_attempt_batch_idx on rowferry.batch_attempt (batch_id, requeues);
create index batch_attempt_open_idx on rowferry.batch_attempt (worker_id) where finished_at is null;

create table rowferry.entry_failure (
    batch_id bigint not null,
    entry_id text not null,
    key text not null,
    outcome text not null,
    reason text not null,
    error text not null,
    attempt integer not null,
    failed_at timestamptz not null default clock_timestamp(),
    constraint entry_failure_pkey primary key (batch_id, entry_id),
    constraint entry_failure_batch_fkey foreign key (batch_id)
    references rowferry.batch_queue (id) on delete cascade,
    constraint entry_failure_outcome_check check (
        outcome in ('changed', 'deleted', 'missing', 'conflict', 'failed')
    )
);
comment on table rowferry.entry_failure is
'Every entry of a batch that was neither migrated nor kept, and why. `reason` groups, `error` explains.';
-- For the reasons of batches in ERROR: a million failures are counted from it alone.
create index entry_failure_reason_idx on rowferry.entry_failure (batch_id, outcome, reason, failed_at);

create type rowferry.counts as (
    batches bigint,
    batches_init bigint,
    batches_done bigint,
    batches_error bigint,
    entries bigint,
    waiting bigint,
    migrated bigint,
    kept bigint,
    changed bigint,
    deleted bigint,
    missing bigint,
    conflict bigint,
    failed bigint,
    bytes bigint,
    unsettled bigint,
    in_error bigint
);
comment on type rowferry.counts is
'What is counted of batches: rowferry.count_batch says what one of them counts, rowferry.sum_counts sums up.';

create table rowferry.batch_tally (
    id bigint generated always as identity,
    migration_id bigint not null,
    queue_name text not null,
    label text,
    counts rowferry.counts not null,
    started_at timestamptz,
    finished_at timestamptz,
    constraint batch_tally_pkey primary key (id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
comment on table rowferry.batch_tally is
'What each change of batch_queue added to its counts, by migration, queue and table, so that progress does not scan the '
'queue. Triggers append rows; now and then their sum replaces them.';
comment on column rowferry.batch_tally.started_at is
'When the first attempt began; pruning and requeueing do not take it back. finished_at: when the last one ended.';

create table rowferry.worker (
    id text not null,
    host text not null,
    pid integer not null,
    process text,
    version text not null,
    batches integer not null,
    in_flight_limit integer not null,
    request_rates jsonb not null default '{}',
    in_hand jsonb not null default '{}',
    unusable jsonb not null default '{}',
    waits_for text,
    queues text [] not null,
    started_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now(),
    reported_at timestamptz,
    stopped_at timestamptz,
    constraint worker_pkey primary key (id),
    -- Workers compute with the rates of all others.
    constraint worker_request_rates_check check (
        jsonb_typeof(request_rates) = 'object'
        and not jsonb_path_exists(
            request_rates, 'strict $.* ? (@.type() != "number" || @ < 0 || @ > 1000000000)'
        )
    )
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
comment on table rowferry.worker is
'One worker process a row. Its heartbeat moves last_seen_at and says what the worker is doing.';
comment on column rowferry.worker.process is
'Its kernel, namespaces, id and start: others on that kernel see at once when it has ended. Null: it told nothing.';
comment on column rowferry.worker.batches is
'Batches that it has claimed. in_flight_limit: objects that it may have in flight. request_rates: requests a second '
'that it gets through, by endpoint, bucket and operation, where the server refuses more.';
comment on column rowferry.worker.unusable is
'Why it cannot work on a migration, by its id, or on a queue of it, by the id and the name. It skips these for a while.';
comment on column rowferry.worker.waits_for is
'Why it gets no connection for a batch; it holds none meanwhile. Null: it has one, or needs none.';
comment on column rowferry.worker.in_hand is
'Entries that it has settled in each of its claimed batches so far, by the id of the attempt: what rowferry.in_hand '
'reads. reported_at: when one of these numbers last changed.';

create table rowferry.fleet (
    is_only boolean not null default true,
    live_workers integer not null default 0,
    request_rates jsonb not null default '{}',
    summed_at timestamptz not null default '-infinity',
    constraint fleet_pkey primary key (is_only),
    constraint fleet_is_only_check check (is_only)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
comment on table rowferry.fleet is
'What the live workers are together, as a heartbeat has summed it up for all: how many, and their rates by key. One row.';
insert into rowferry.fleet default values;

create table rowferry.upload (
    id bigint generated always as identity,
    production text not null,
    key text not null,
    migration_id bigint not null,
    -- No foreign keys: their checks would wait for the row lock of a claim.
    batch_id bigint not null,
    attempt_id bigint not null,
    upload_id text,
    legacy text,
    legacy_key text,
    source_etag text,
    size_bytes bigint,
    part_bytes bigint,
    begun_at timestamptz not null default clock_timestamp(),
    touched_at timestamptz not null default clock_timestamp(),
    constraint upload_pkey primary key (production, key),
    constraint upload_id_key unique (id)
);
create index upload_batch_idx on rowferry.upload (batch_id);
comment on table rowferry.upload is
'One unfinished multipart upload a row, committed before its first part is sent, so that the next attempt goes on with '
'it after a crash. Removed when it is completed or aborted.';
comment on column rowferry.upload.production is
'Endpoint and bucket that it writes to; legacy: those that it reads from.';
comment on column rowferry.upload.attempt_id is
'The attempt that works on it, or did last: it holds the upload while its batch is claimed.';
comment on column rowferry.upload.upload_id is
'The S3 server''s. Null: it was about to begin.';
comment on column rowferry.upload.source_etag is
'ETag of the legacy object: an upload of another version is not continued.';

create table rowferry.upload_part (
    upload bigint not null,
    number integer not null,
    etag text not null,
    constraint upload_part_pkey primary key (upload, number),
    constraint upload_part_upload_fkey foreign key (upload) references rowferry.upload (id) on delete cascade
);
comment on table rowferry.upload_part is
'One part a row that the S3 server has confirmed, whichever host has sent it. Any other part that the server lists may '
'have been cut off.';

create table rowferry.copied_object (
    production text not null,
    key text not null,
    legacy text not null,
    legacy_key text not null,
    source_etag text not null,
    size_bytes bigint not null,
    part_bytes bigint not null,
    etag text not null,
    digests bytea,
    copied_at timestamptz not null default clock_timestamp(),
    is_pending boolean not null default false,
    constraint copied_object_pkey primary key (production, key)
);
comment on table rowferry.copied_object is
'One production object a row that was copied by parts: which legacy object it was made of, so that nothing has to be '
'read to find them equal, and the digests of its parts, so that a later pass sends only what has changed. Of others, '
'those that were copied while the application may have been about to write there: they are known as copies. '
'Deleting a row is safe: the object is compared as any other then.';
comment on column rowferry.copied_object.etag is
'Of the production object as it was left: one with another ETag is no longer this copy.';
comment on column rowferry.copied_object.is_pending is
'Whether another write to its key was begun of which nobody knows how it ended: what stands there may be its work.';
comment on column rowferry.copied_object.digests is
'The MD5 of each part, 16 bytes each, in the order of the parts. Null: the server did not tell them.';

create table rowferry.coverage (
    migration text not null,
    folders jsonb not null,
    left_behind bigint not null,
    constraint coverage_pkey primary key (migration)
);
comment on table rowferry.coverage is
'The folders of a migration''s legacy bucket, as `rowferry check` and `rowferry migrate` saw them last, and how many '
'objects no row and no [[objects]] of the plan names, in folders of which a tenth or more is not named. No row: nothing '
'was looked at. By the name of the migration, which a check precedes.';

create table rowferry.server_fact (
    migration text not null,
    fact text not null,
    holds boolean not null,
    key text,
    noted_at timestamptz not null default now(),
    constraint server_fact_pkey primary key (migration, fact)
);
comment on table rowferry.server_fact is
'What the servers of a migration were seen to do, a fact a row, by `rowferry check`, `rowferry migrate` and workers: '
'workers need not find it out object by object. By the name of the migration, which a check precedes.';
comment on column rowferry.server_fact.key is
'Of an object that has shown it. Where others fail, workers ask whether it still holds for this one.';

create table rowferry.claim_key (
    key uuid not null default gen_random_uuid(),
    constraint claim_key_pkey primary key (key)
);
comment on table rowferry.claim_key is
'One row that only the functions read. It seals a claim, so that only the claiming transaction can finish the batch; '
'it opens nothing else.';
