"""The queue `migrate`: copy objects to the production bucket, and point their rows at them."""
