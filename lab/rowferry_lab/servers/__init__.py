"""Servers of one's own: PostgreSQL and S3."""
