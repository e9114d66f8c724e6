-- The exporter only reads, and would rather know nothing than hold a queue up.
set default_transaction_read_only = on;
set statement_timeout = '30s'
