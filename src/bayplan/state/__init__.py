"""The cluster as columns: nodes are rows of arrays, changed in place and lent for one cycle."""
