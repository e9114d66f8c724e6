"""HTTP/1.1 to one server: connect, pool, connection, parser; one event loop for all."""
