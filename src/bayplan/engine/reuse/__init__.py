"""Cached results per signature: what plugins answered for a row, and the ranking of the nodes."""
