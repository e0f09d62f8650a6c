"""The scheduling queue: which pod is tried next, and when a rejected one is tried again."""
