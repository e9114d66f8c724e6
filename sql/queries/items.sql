-- `rowferry enqueue --items`.

-- name: read_own_time
-- When the batches of this transaction were created.
select now() as created_at;
