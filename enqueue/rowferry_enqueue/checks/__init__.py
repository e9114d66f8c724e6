"""What `rowferry check` looks at, a module each; `enqueue` refuses what the catalogue shows, by the same modules."""
