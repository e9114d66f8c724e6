-- 0010_faults: a migration that workers have paused says why; a claim may be of some migrations only, and the function
-- that took any makes room for it.

alter table rowferry.migration add column pause_reason text;
comment on column rowferry.migration.pause_reason is
'Why workers have paused it, in one sentence; null: a person did, or it runs.';

drop function if exists rowferry.claim_batch(text []);
