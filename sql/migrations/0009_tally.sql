-- 0009_tally: what rowferry.progress sums up is written down where it changes, so that nobody has to scan the queue.

create table rowferry.batch_tally (
    id bigint generated always as identity,
    migration_id bigint not null,
    queue_name text not null,
    label text,
    batches bigint not null,
    batches_init bigint not null,
    batches_done bigint not null,
    batches_error bigint not null,
    entries bigint not null,
    migrated bigint not null,
    kept bigint not null,
    changed bigint not null,
    deleted bigint not null,
    missing bigint not null,
    conflict bigint not null,
    failed bigint not null,
    bytes bigint not null,
    started_at timestamptz,
    finished_at timestamptz,
    constraint batch_tally_pkey primary key (id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
comment on table rowferry.batch_tally is
'What each statement that changed batch_queue has added to its sums or taken from them, by migration, queue and table. '
'Triggers append; now and then rows are replaced by their sum. '
'missing, conflict and failed are those of finished batches.';
comment on column rowferry.batch_tally.started_at is
'When the first of the attempts began; what is pruned or requeued does not take it back. finished_at: the last ended.';
