"""`rowferry cutover`: short passes, the moment to switch, and the last pass."""
