"""Checks the buckets of a plan, and the legacy objects that its rows name."""
