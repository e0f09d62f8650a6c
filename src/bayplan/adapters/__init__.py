"""Adapters: the implementations of the ports. They do not import the engine."""
