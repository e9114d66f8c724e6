"""Several worker processes on one machine, each replaced when it dies."""
