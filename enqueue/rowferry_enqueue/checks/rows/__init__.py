"""Checks the tables of a plan: their columns, their rows, the keys in them. No bucket is asked."""
