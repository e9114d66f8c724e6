-- Returns how many connections all workers of this role may take together: a quarter of those that the server has for
-- roles without privileges, and one less than the role's own limit or the database's, which screens need; at least 1.
-- Writes: nothing. Called by: rowferry.heartbeat, rowferry_worker/supervisor/supervisor.py.
create or replace function rowferry.share_connections()
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select greatest(1, least(
        (
            current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
            - coalesce(current_setting('reserved_connections', true)::integer, 0)
        ) / 4,
        case when not r.rolsuper then nullif(r.rolconnlimit, -1) - 1 end,
        case when not r.rolsuper then nullif(d.datconnlimit, -1) - 1 end
    ))
    from pg_roles as r
    cross join pg_database as d
    where r.rolname = session_user and d.datname = current_database();
$$;
