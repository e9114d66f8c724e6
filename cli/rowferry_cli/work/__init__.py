"""Commands that put batches in the queue or work on them."""
