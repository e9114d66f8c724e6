"""A run of workers on this host, for migrate, verify and revert."""
