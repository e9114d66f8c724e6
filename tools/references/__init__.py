"""Writes the reference pages of docs/ and the man pages from their subjects: commands, metrics, views, functions."""
