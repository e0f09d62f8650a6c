"""What `bayplan run` puts around a scheduler: leader election, endpoints, logs, signals."""
