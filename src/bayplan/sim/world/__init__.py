"""The surroundings of the scheduler in a simulation: pods that end, volumes, extenders,
checkers."""
