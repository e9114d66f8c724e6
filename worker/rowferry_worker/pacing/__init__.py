"""How many objects are in flight and how fast requests go: decided from what the servers do, on a clock passed in."""
