"""VolumeBinding: a pod fits nodes that reach its volumes, or where they can be provisioned.

- `claims`: the claims of a pod, those with a volume and those that wait for one;
- `plugin`: the volumes that the pod would get on each node, for all nodes at once, and scores by
  the storage that remains;
- `binding`: writes the decision, and waits until the volume controller has carried it out.
"""

from bayplan.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
