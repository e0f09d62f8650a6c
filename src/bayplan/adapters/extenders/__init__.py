"""Scheduler extenders over HTTP: the wire format of extender/v1, and who speaks it."""
