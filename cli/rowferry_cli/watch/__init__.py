"""`rowferry watch`: keys in, snapshots drawn."""
