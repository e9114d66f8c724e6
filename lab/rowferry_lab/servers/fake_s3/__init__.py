"""A fake S3 server for speed, throttling and pictures."""
