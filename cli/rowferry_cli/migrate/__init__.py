"""`rowferry migrate`, and the passes of workers on this host that other commands run as well."""
