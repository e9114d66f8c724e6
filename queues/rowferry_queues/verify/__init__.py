"""The queue `verify`: hold production objects against their legacy objects."""
