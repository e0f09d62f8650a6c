"""The metrics of a run: one file for each family of metrics."""
