"""Scheduler extenders over HTTP: the client and the wire format of extender/v1."""
