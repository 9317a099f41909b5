"""The report of an experiment: one HTML file that holds all it shows."""
