"""One file a bench."""
