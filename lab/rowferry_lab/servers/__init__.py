"""Private servers for one process: PostgreSQL and S3."""
