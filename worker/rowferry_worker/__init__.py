"""The worker: claim → entries → copy → rows → verdict, one file a step."""
