"""The live view of `rowferry watch`: keys in, snapshots drawn."""
