-- A worker whose host vanishes must not keep its batch for hours: the server looks after its connections itself.
-- Behind PgBouncer the settings are those of one transaction (is_local), else those of the session.
select
    set_config('tcp_keepalives_idle', '10', %(is_local)s),
    set_config('tcp_keepalives_interval', '5', %(is_local)s),
    set_config('tcp_keepalives_count', '3', %(is_local)s),
    set_config('tcp_user_timeout', '15000', %(is_local)s),
    set_config('idle_in_transaction_session_timeout', '600000', %(is_local)s),
    set_config('lock_timeout', %(lock_timeout)s, %(is_local)s)
