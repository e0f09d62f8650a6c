"""What surrounds the scheduler in a simulation: pods that end, volumes, extenders, checkers."""
