"""A simulator of workers and servers, and the candidates for the controller that finds the pace."""
