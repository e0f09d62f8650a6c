"""VolumeBinding: a pod fits nodes that reach its volumes, or where they can be provisioned.

`claims` sorts a pod's claims into those that have a volume and those that wait for one; `finding`
answers for all nodes at once which volumes they would get there; `scoring` prefers nodes by how
much storage that leaves; `binding` writes the decision and waits until the volume controller has
carried it out.
"""

from bayplan.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
