-- Savepoints of a batch's transaction; its COMMIT releases them.
-- noqa: disable=PRS

-- name: begin_claim
-- The transaction of a claim, on a connection in autocommit.
begin isolation level read committed;

-- name: begin_work
-- What a batch does to rows and queue is undone if it fails, and its claim is kept. Sent with the claim.
savepoint rowferry_work;

-- name: undo_work
-- As if the batch had only been claimed.
rollback to savepoint rowferry_work;
release savepoint rowferry_work;

-- name: begin_read
-- A read that leaves no lock on the table behind.
savepoint rowferry_read;

-- name: write_nothing
-- Until the savepoint is undone. It holds for what the SQL of a plan calls.
set transaction read only;

-- name: undo_read
-- What it has locked is free again. Sent with the read, as what follows.
rollback to savepoint rowferry_read;

-- name: end_read
-- The savepoint of the read itself.
release savepoint rowferry_read;

-- name: begin_rows
-- Rows that are written at once. A deferred constraint would fail only at COMMIT, too late to leave one row out.
savepoint rowferry_rows;
set constraints all immediate;

-- name: undo_rows
-- As if none of these rows had been written.
rollback to savepoint rowferry_rows;
release savepoint rowferry_rows;
