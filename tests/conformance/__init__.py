"""`make test-servers`: the whole product against S3 servers of others, both as legacy and as production."""
