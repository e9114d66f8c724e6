"""What every queue is held to, those of installed packages as well: fixtures, a worker that stops where it is told."""
