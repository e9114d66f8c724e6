"""Everything that `rowferry demo` and the tests need to run on one machine: PostgreSQL, S3 servers, the demo."""
