"""Everything behind `rowferry sweep`: many short migrations in a simulated environment, each checked, compared."""
