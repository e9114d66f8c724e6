"""S3 for tests: real servers, fakes that misbehave, clients and what an observer sees."""
