"""Which copies start when, and what their requests tell of the servers."""
