"""A simulated environment: tables, buckets, images."""
