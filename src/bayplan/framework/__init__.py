"""The scheduling framework: extension points, statuses, events, and what runs one profile."""
