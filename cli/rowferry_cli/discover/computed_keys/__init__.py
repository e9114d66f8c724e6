"""Keys that no column holds: an application computes them from ids, names and digests."""
