-- The exporter only reads, and would rather know nothing than hold a queue up. Of its transaction, not of its session:
-- behind PgBouncer the next client of the session would find that it may not write.
select set_config('transaction_read_only', 'on', true), set_config('statement_timeout', '30s', true)
