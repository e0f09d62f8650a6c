"""Simulation: the same scheduler on an embedded cluster, under virtual time."""
