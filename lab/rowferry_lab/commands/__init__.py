"""The commands of the lab: demo, prepare, sweep."""
