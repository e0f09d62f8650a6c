"""What a cycle asks of extenders, and what follows from their answers."""
