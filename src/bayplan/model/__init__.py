"""A cluster in memory, in an engine that decides when it is called. Not here: time, questions."""
