"""Claims, volumes and capacities, compiled once per version: integer sizes, parsed selectors."""

from collections.abc import Mapping
from functools import cached_property
from typing import final

from bayplan.api.csi_migration import (
    CSIVolume,
    InTreePlugin,
    NotTranslated,
    node_selector,
    persistent_volume,
    plugin_of,
)
from bayplan.api.object_meta import NodeSelector, Quantities, is_controlled_by
from bayplan.api.objects import namespaced_name
from bayplan.api.quantity import QuantityError, nanos, units_of
from bayplan.api.selectors import (
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    label_selector,
    node_term,
)
from bayplan.api.storage_objects import (
    BETA_STORAGE_CLASS,
    BIND_COMPLETED,
    FILESYSTEM,
    SELECTED_NODE,
    STORAGE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.state.pods import PodInfo

#: Terms of a node selector: a node fits if one term matches. A term is a list of conditions on
#: labels; () matches every node. None: every node fits.
NodeTerms = tuple[tuple[Requirement, ...], ...] | None


@final
class ClaimInfo:
    """One version of a PersistentVolumeClaim."""

    def __init__(self, claim: PersistentVolumeClaim) -> None:
        self.claim = claim
        meta = claim.metadata
        self.name = meta.name
        self.namespace = meta.namespace or ""
        self.key = namespaced_name(meta.namespace, meta.name)
        self.uid = meta.uid or ""
        self.version = meta.resource_version or ""

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.claim.metadata.annotations or {}

    @property
    def volume_name(self) -> str:
        return self.claim.spec.volume_name

    @property
    def class_name(self) -> str:
        """The name of the StorageClass; "": no class. The old annotation overrides the field."""
        named = self.annotations.get(BETA_STORAGE_CLASS)
        return (self.claim.spec.storage_class_name or "") if named is None else named

    @property
    def selected_node(self) -> str | None:
        """The node for which a volume is to be provisioned."""
        return self.annotations.get(SELECTED_NODE)

    @property
    def is_fully_bound(self) -> bool:
        return bool(self.volume_name) and BIND_COMPLETED in self.annotations

    @cached_property
    def size_nanos(self) -> int | None:
        """The requested size in billionths of a byte; None: the claim states none."""
        return _storage(self.claim.spec.resources.requests)

    @property
    def size_bytes(self) -> int:
        return units_of(self.size_nanos or 0)

    @cached_property
    def selector(self) -> Selector | None:
        """The selector of volumes; None: any volume. Raises SelectorError."""
        selector = self.claim.spec.selector
        return None if selector is None else label_selector(selector)

    def is_for(self, pod: PodInfo) -> bool:
        """Whether the claim was created for an ephemeral volume of this pod."""
        return is_controlled_by(self.claim.metadata, pod.uid)


@final
class VolumeInfo:
    """One version of a PersistentVolume."""

    def __init__(self, volume: PersistentVolume) -> None:
        self.volume = volume
        self.name = volume.metadata.name
        self.version = volume.metadata.resource_version or ""

    @property
    def labels(self) -> Mapping[str, str]:
        return self.volume.metadata.labels or {}

    @property
    def class_name(self) -> str:
        named = (self.volume.metadata.annotations or {}).get(BETA_STORAGE_CLASS)
        return self.volume.spec.storage_class_name if named is None else named

    @cached_property
    def size_nanos(self) -> int:
        return _storage(self.volume.spec.capacity) or 0

    @property
    def size_bytes(self) -> int:
        return units_of(self.size_nanos)

    @property
    def mode(self) -> str:
        return self.volume.spec.volume_mode or FILESYSTEM

    @cached_property
    def node_terms(self) -> NodeTerms:
        """The nodes that can access the volume."""
        affinity = self.volume.spec.node_affinity
        return _node_terms(affinity.required if affinity is not None else None)

    @cached_property
    def plugin(self) -> InTreePlugin | None:
        """The in-tree plugin of the volume, if the plugin was migrated to a CSI driver."""
        return plugin_of(self.volume.spec)

    @cached_property
    def csi_node_terms(self) -> NodeTerms:
        """`node_terms` as the CSI driver of the in-tree plugin has them. Raises NotTranslated."""
        assert self.plugin is not None
        return _node_terms(node_selector(self.plugin, self.volume))

    @cached_property
    def csi_volume(self) -> CSIVolume | None:
        """The CSI driver that attaches the volume, and its handle; None: no CSI driver attaches
        it."""
        csi = self.volume.spec.csi
        if csi is not None:
            return CSIVolume(csi.driver, csi.volume_handle)
        if self.plugin is None:
            return None
        try:
            return persistent_volume(self.plugin, self.volume)
        except NotTranslated:
            return None

    def is_claimed_by(self, claim: ClaimInfo) -> bool:
        """Whether the volume's claimRef refers to this claim. Upstream: IsVolumeBoundToClaim."""
        ref = self.volume.spec.claim_ref
        if ref is None or (ref.name, ref.namespace or "") != (claim.name, claim.namespace):
            return False
        return not ref.uid or ref.uid == claim.uid


@final
class CapacityInfo:
    """One version of a CSIStorageCapacity."""

    def __init__(self, capacity: CSIStorageCapacity) -> None:
        meta = capacity.metadata
        self.key = namespaced_name(meta.namespace, meta.name)
        self.capacity_bytes = _bytes(capacity.capacity) or 0
        most = capacity.maximum_volume_size
        #: The largest volume that can be provisioned; None: no volume can.
        self.volume_bytes_max = _bytes(capacity.capacity if most is None else most)
        self.nodes = _selected(capacity)


def _selected(capacity: CSIStorageCapacity) -> Selector:
    try:
        return label_selector(capacity.node_topology)
    except SelectorError:
        return NOTHING  # as upstream: such nodes have no access


def _storage(quantities: Quantities | None) -> int | None:
    text = (quantities or {}).get(STORAGE)
    if text is None:
        return None
    try:
        return nanos(text)
    except QuantityError:
        return None  # an API server does not store such a quantity


def _bytes(quantity: str | int | float | None) -> int | None:
    return None if quantity is None else units_of(_storage({STORAGE: quantity}) or 0)


def _node_terms(required: NodeSelector | None) -> NodeTerms:
    """The terms of a node selector as conditions on labels. As upstream, conditions on the name of
    the node are evaluated with an empty name."""
    if required is None:
        return None
    terms = map(node_term, required.node_selector_terms or ())
    return tuple(
        term.labels
        for term in terms
        if term.error is None
        and not term.is_empty
        and all(one.matches_value("") for one in term.fields)
    )
