"""Everything around a live scheduler: leader election, endpoints, logs, signals."""
