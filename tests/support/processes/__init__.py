"""Processes that tests start: commands, workers, terminals, hosts, Prometheus."""
