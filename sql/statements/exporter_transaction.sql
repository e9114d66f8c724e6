-- The exporter only reads, and would rather know nothing than hold a queue up. Of its transaction, not of its session:
-- behind PgBouncer the next client of the session would find that it may not write.
set transaction read only;
set local statement_timeout = '30s'
