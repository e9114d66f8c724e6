"""S3: requests, responses, signing, credentials, and the client that sends them."""
