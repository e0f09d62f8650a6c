"""DynamicResources: devices for a pod's claims.

claims.py       a pod's claims, found by name
extended.py     extended resources that devices stand for
preparing.py    PreFilter            filtering.py   Filter, node by node
attempt.py      what one attempt knows
pools.py, requests.py, selection.py, capacity.py, counters.py, constraints.py
                what there is, what is asked for, and which of it may be given
search.py, takings.py, allocation.py, allocator.py
                finding devices for all claims at once, and writing down what was found
readiness.py    devices that must be made ready first
binding.py      writes to the API     hints.py      what makes a rejected pod worth a retry
"""

from bayplan.plugins.dynamic_resources.plugin import DynamicResources, DynamicResourcesArgs

__all__ = ["DynamicResources", "DynamicResourcesArgs"]
