"""The search for secrets in everything that others can read."""
