"""The exporter: the state of the whole queue as Prometheus metrics."""
