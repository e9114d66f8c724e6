"""How many requests and bytes a migration takes, how long, and what it costs: counted before it starts."""
