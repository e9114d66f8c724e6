"""What is done and left of a migration, by rows and by objects."""
