"""One batch, from its claim to its verdict."""
