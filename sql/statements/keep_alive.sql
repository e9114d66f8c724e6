-- Shows PostgreSQL that a transaction which waits for S3 is still ours: idle_in_transaction_session_timeout starts anew.
select 1
