"""Draws the dashboards with Grafana's own published components, from the answers of a real migration."""
