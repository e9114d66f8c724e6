"""`rowferry estimate`: counting and sampling entries, measuring, calculating, printing."""
