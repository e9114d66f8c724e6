-- While it runs a query, the server looks every second whether its client is still there.
select set_config('client_connection_check_interval', '1s', %(is_local)s)
