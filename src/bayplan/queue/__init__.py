"""The scheduling queue: which pod is tried next, and when a rejected pod is tried again."""
