"""Checks the queues of a plan: what the plan says of them, then what their tables have."""
