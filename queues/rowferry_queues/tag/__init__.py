"""The queue `tag`: set tags of production objects, by fixed values and by columns of their rows."""
