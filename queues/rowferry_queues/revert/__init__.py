"""The queue `revert`: point rows back at their legacy objects."""
