"""What an experiment measures of a run: one file for each family of metrics."""
