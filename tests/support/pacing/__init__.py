"""A simulator of workers and servers, in which the product's pace is tried."""
