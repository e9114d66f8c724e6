"""Who asks, at which endpoint, and how a request proves it."""
