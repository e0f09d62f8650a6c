"""Measurements of the repository: ratios side by side in one run, never absolute limits."""
