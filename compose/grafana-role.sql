-- Creates Grafana's role when the simulated PostgreSQL starts for the first time. `rowferry init` grants it the views,
-- and sets the same limits.
do $$ begin
    execute format(
        'create role rowferry_grafana login password %L',
        trim(e'\n' from pg_read_file('/run/secrets/grafana_database_password'))
    );
end $$;
alter role rowferry_grafana set default_transaction_read_only = on;
alter role rowferry_grafana set statement_timeout = '15s';
alter role rowferry_grafana set idle_in_transaction_session_timeout = '60s';
alter role rowferry_grafana set jit = off;
