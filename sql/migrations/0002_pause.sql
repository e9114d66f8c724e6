-- 0002_pause: a migration can be paused, by `rowferry pause` or by an UPDATE of this column.

alter table rowferry.migration add column paused_at timestamptz;
comment on column rowferry.migration.paused_at is
'Set: no batch of this migration is claimed; what is in hand is finished. Null: it runs.';
