"""DefaultPreemption: see plugin.py."""

from bayplan.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
