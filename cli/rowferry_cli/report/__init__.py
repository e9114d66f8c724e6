"""`rowferry report`, and its page: gather the facts, build the model, draw its SVG, render it."""
