-- A worker whose host vanishes must not keep its batch for hours: the server looks after its connections itself.
-- Nothing that it asks is worth being compiled (jit): a plan with a node switched off would be, anew each time.
-- And an id has one text, whatever the role or the database has set: what one session writes, another reads. ISO
-- leaves the order of days and months, and TimeZone, as they are: ids in ISO say both, and triggers may rely on them.
-- Behind PgBouncer the settings are those of one transaction (is_local), else those of the session.
select
    set_config('tcp_keepalives_idle', %(keepalives_idle)s, %(is_local)s),
    set_config('tcp_keepalives_interval', %(keepalives_interval)s, %(is_local)s),
    set_config('tcp_keepalives_count', %(keepalives_count)s, %(is_local)s),
    set_config('tcp_user_timeout', %(user_timeout)s, %(is_local)s),
    set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, %(is_local)s),
    set_config('jit', 'off', %(is_local)s),
    case
        -- PostgreSQL 17 and later may bound a transaction as a whole; a batch has its time budget, and bounds above.
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
    set_config('lc_monetary', 'C', %(is_local)s)
