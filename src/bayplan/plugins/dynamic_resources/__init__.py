"""DynamicResources: devices for a pod's claims.

plugin.py       the extension points, and the events that make a rejected pod worth a retry
filtering.py    PreFilter and Filter: the pod's claims, and the state of an attempt
extended.py     extended resources that devices stand for
features.py     the features that are enabled
pools.py, requests.py, selection.py, capacity.py
                the devices of a node, what a claim requests, and which devices match
search.py, tentative.py, allocation.py, allocator.py
                the search for devices of all claims at once, and its result
binding.py      writes to the API
"""

from bayplan.plugins.dynamic_resources.plugin import DynamicResources, DynamicResourcesArgs

__all__ = ["DynamicResources", "DynamicResourcesArgs"]
