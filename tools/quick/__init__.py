"""`make quick-list`: choose the tests of `make test`, by what they reach for what they cost."""
