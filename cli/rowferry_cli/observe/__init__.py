"""Commands that only look."""
