"""Adapters: what stands behind the ports. They do not know the engine."""
