"""Runs the tests with each version of PostgreSQL and of Python that rowferry promises."""
