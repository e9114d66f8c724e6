"""Commands that come before the first batch."""
