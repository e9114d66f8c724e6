"""The queue `inspect`: compute facts of objects while they are streamed, and write them into rows."""
