-- Every session with PostgreSQL.

-- name: session_settings
-- Settings that bound what a session may take, and that make texts the same in every session. The server itself checks
-- its connections: a batch must not stay locked for hours after its worker's host is gone. JIT is off: a plan with a
-- disabled node would be compiled anew for each query. An id has one text, whatever the role or the database sets: one
-- session writes it, another reads it. ISO leaves the order of days and months, and TimeZone, as they are: ids in ISO
-- contain both, and triggers may rely on them. A role that is called rowferry must find the table `events` of the plan,
-- not the view of that name in our schema, so its search path leaves "$user" out. Behind PgBouncer the settings last
-- for one transaction (is_local), else for the session.
select
    set_config('tcp_keepalives_idle', %(keepalives_idle)s, %(is_local)s),
    set_config('tcp_keepalives_interval', %(keepalives_interval)s, %(is_local)s),
    set_config('tcp_keepalives_count', %(keepalives_count)s, %(is_local)s),
    set_config('tcp_user_timeout', %(user_timeout)s, %(is_local)s),
    set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, %(is_local)s),
    set_config('jit', 'off', %(is_local)s),
    case
        -- PostgreSQL 17 and later can limit a whole transaction; a batch has its time budget and the limits above.
        when current_setting('server_version_num')::integer >= 170000
            then set_config('transaction_timeout', '0', %(is_local)s)
    end,
    set_config('lock_timeout', %(lock_timeout)s, %(is_local)s),
    set_config(
        'statement_timeout', coalesce(%(statement_timeout)s::text, current_setting('statement_timeout')), %(is_local)s
    ),
    set_config(
        'client_connection_check_interval',
        coalesce(%(check_interval)s::text, current_setting('client_connection_check_interval')),
        %(is_local)s
    ),
    set_config('datestyle', 'ISO', %(is_local)s),
    set_config('intervalstyle', 'postgres', %(is_local)s),
    set_config('extra_float_digits', '1', %(is_local)s),
    set_config('bytea_output', 'hex', %(is_local)s),
    set_config('lc_monetary', 'C', %(is_local)s),
    case
        when current_user = 'rowferry'
            then set_config(
                'search_path',
                regexp_replace(current_setting('search_path'), '"\$user" *, *|(, *)?"\$user"', ''),
                %(is_local)s
            )
    end;

-- name: set_local
-- Changes settings of PostgreSQL for the rest of a transaction: behind PgBouncer, the session is another client's next.
select set_config(s.name, s.value, true)
from unnest(%(names)s::text [], %(values)s::text []) as s (name, value);

-- name: call_function
-- Calls one of rowferry's functions.
select * from rowferry.{function}({arguments});

-- name: is_read_only
-- Whether this session cannot write: a standby, or a setting of the server, the database or the role.
select current_setting('transaction_read_only')::boolean as is_read_only;
