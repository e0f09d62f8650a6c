"""The finalizers that Kubernetes' own controllers, and those of its storage, add and remove.

Each of them keeps an object that is being deleted until a condition holds; then its controller
removes it. All other finalizers belong to controllers that a cluster may or may not run.
"""

from typing import Final

#: Deletion with ``propagationPolicy: Foreground``: until the dependents that block it are gone.
FOREGROUND: Final = "foregroundDeletion"
#: Deletion with ``propagationPolicy: Orphan``: until no dependent names the object as its owner.
ORPHAN: Final = "orphan"
#: Of a Job's pod: until the Job has counted the pod, or is gone. Upstream: pkg/controller/job.
JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"
#: Until no pod on a node uses the claim. Upstream: pkg/controller/volume/pvcprotection.
PVC_PROTECTION: Final = "kubernetes.io/pvc-protection"
#: Until no claim has the volume. Upstream: pkg/controller/volume/pvprotection.
PV_PROTECTION: Final = "kubernetes.io/pv-protection"
#: Of a volume that is deleted with its claim: until its storage is deleted, by the volume
#: controller or by a provisioner (sig-storage-lib-external-provisioner).
PV_CONTROLLER: Final = "kubernetes.io/pv-controller"
PROVISIONER: Final = "external-provisioner.volume.kubernetes.io/finalizer"
#: Until the claim has no users. Upstream: pkg/controller/resourceclaim.
CLAIM_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
#: Until no pod of the group is left that has not ended. Upstream:
#: pkg/controller/scheduling/podgroupprotection.
POD_GROUP_PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
#: Of a volume, with the name of its driver behind it: until the volume is attached nowhere
#: (external-attacher).
ATTACHER_PREFIX: Final = "external-attacher/"

FINALIZERS: Final = frozenset(
    (
        FOREGROUND,
        ORPHAN,
        JOB_TRACKING,
        PVC_PROTECTION,
        PV_PROTECTION,
        PV_CONTROLLER,
        PROVISIONER,
        CLAIM_PROTECTION,
        POD_GROUP_PROTECTION,
    )
)
