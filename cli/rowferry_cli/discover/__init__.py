"""`rowferry plan --discover`: finds the columns that name legacy objects, and writes a plan."""
