"""An example of queues without S3: books, each with 30 names, are written into 30 tables by 30 chained queues."""
