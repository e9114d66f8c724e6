"""Reports read from the queue: progress, status, report, pause."""
