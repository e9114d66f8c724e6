"""The page that `rowferry report --html` writes: gather its facts, build its model, draw its SVG, render it."""
