"""The scene of a large user, which is made, and not worked on."""
