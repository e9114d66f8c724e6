"""An S3 server in memory, for the sweep, the benches and the tests: latency, limits and faults are set as it runs."""
