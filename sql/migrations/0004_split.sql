-- 0004_split: a batch that was split off another inherits how often that one has killed its worker.

alter table rowferry.batch_queue add column crashes integer not null default 0;
comment on column rowferry.batch_queue.crashes is
'How often the batches that this one was split from have killed their workers; its own crashes are in batch_attempt.';

-- It returns a column more from now on; the new one follows with the functions.
drop function if exists rowferry.claim_batch(text []);
