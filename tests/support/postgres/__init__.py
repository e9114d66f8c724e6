"""PostgreSQL for tests: servers, roles, plans, privileges, what stands between."""
