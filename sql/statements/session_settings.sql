-- A worker whose host vanishes must not keep its batch for hours: the server looks after its connections itself.
select
    set_config('tcp_keepalives_idle', '10', false),
    set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '3', false),
    set_config('tcp_user_timeout', '15000', false),
    set_config('lock_timeout', %(lock_timeout)s, false)
