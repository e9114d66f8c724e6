"""What the queue says of a migration: progress, status, report, pause."""
