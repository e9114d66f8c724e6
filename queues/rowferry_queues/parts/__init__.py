"""The queue `parts`: large objects, whose parts are batches that all workers share."""
