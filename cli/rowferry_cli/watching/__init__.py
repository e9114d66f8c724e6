"""`rowferry watch`: what goes on in a migration, live in a terminal."""
