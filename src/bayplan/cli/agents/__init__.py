"""The questions of the command line as tools for agents. Not here: answers of their own."""
