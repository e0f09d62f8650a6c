"""VolumeBinding: a pod fits nodes that reach its volumes, or where they can be provisioned.

- `plugin`: the extension points, scores by the storage that remains, and the events that make a
  rejected pod worth a retry;
- `claims`: the claims of a pod, and the volumes that they would get on each node, for all nodes at
  once;
- `binding`: writes the decision, and waits until the volume controller has carried it out.
"""

from bayplan.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
