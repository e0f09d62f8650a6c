"""Leader election by a Lease, and the guard that stops writes without it."""
