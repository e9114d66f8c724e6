"""What the database records of a migration: its state, progress, facts and coverage."""
