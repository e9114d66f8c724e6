"""`make test-servers`: the whole product against S3 servers that nobody here wrote, both as legacy and as production."""
