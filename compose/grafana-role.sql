-- Creates Grafana's role when the simulated PostgreSQL starts for the first time. `rowferry init` grants it the views.
do $$ begin
    execute format(
        'create role rowferry_grafana login password %L',
        trim(e'\n' from pg_read_file('/run/secrets/grafana_database_password'))
    );
end $$;
