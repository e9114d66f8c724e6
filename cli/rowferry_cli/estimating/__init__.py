"""The parts of `rowferry estimate`: counting and sampling entries, measuring, calculating, printing."""
