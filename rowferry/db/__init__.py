"""PostgreSQL: connections, timeouts, statements, the schema."""
