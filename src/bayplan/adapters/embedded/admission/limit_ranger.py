"""LimitRanger: default requests and limits of containers, and bounds of containers, pods and
claims.

If several limits are violated, the message has all of them, ordered by resource. Upstream:
plugin/pkg/admission/limitranger, whose order is not fixed.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, cast, final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.api_errors import ForbiddenError, aggregated
from bayplan.adapters.embedded.pod_amounts import (
    container_amounts,
    limited_amounts,
    limits_part,
    requests_part,
)
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.admission_objects import LIMIT_RANGE, LimitRange, LimitRangeItem
from bayplan.api.amounts import Amount, AmountsByResource, amounts_of
from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM, POD, ApiObject, Pod
from bayplan.api.quantity import NANOS_PER_MILLI
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.objects.keys import Content, ObjectKey

CONTAINER_TYPE, POD_TYPE, CLAIM_TYPE = "Container", "Pod", "PersistentVolumeClaim"
#: Where a pod says which amounts the plugin set.
ANNOTATION = "kubernetes.io/limit-ranger"


@final
class LimitRanger(AdmissionPlugin):
    """See the module."""

    name = "LimitRanger"
    changed_kinds = (POD,)
    refused_kinds = (POD, PERSISTENT_VOLUME_CLAIM)
    read_kinds = (LIMIT_RANGE,)

    def __init__(self, store: VersionedStore) -> None:
        self._store = store

    def admit(self, key: ObjectKey, content: Content) -> Content:
        for limit_range in self._ranges(key.namespace):
            content = _with_defaults(content, limit_range)
        return content

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        violations = _of_pod if key.kind == POD else _of_claim
        for limit_range in self._ranges(key.namespace):
            texts = [
                text
                for item in limit_range.spec.limits or ()
                for text in violations(item, cast(Pod, decoded))
            ]
            if texts:
                raise ForbiddenError(key, aggregated(texts))

    def _ranges(self, namespace: str) -> list[LimitRange]:
        """The ranges of a namespace, by name."""
        if not self._store.count(LIMIT_RANGE):
            return []
        stored = [one for one in self._store.all(LIMIT_RANGE) if one.key.namespace == namespace]
        return [cast(LimitRange, one.object) for one in sorted(stored, key=lambda one: one.key)]


# ---- defaults -------------------------------------------------------------------------------


def _with_defaults(pod: Content, limit_range: LimitRange) -> Content:
    limits: Content = {}
    requests: Content = {}
    for item in limit_range.spec.limits or ():
        if item.type == CONTAINER_TYPE:
            limits.update(item.default or {})
            requests.update(item.default_request or {})
    if not limits and not requests:
        return pod
    defaults = {"requests": requests, "limits": limits}
    added: list[str] = []
    spec = dict(pod["spec"])
    for field, noun in (("containers", "container"), ("initContainers", "init container")):
        if spec.get(field):
            spec[field] = [_filled(each, defaults, noun, added) for each in spec[field]]
    if not added:
        return pod
    meta = pod["metadata"]
    note = {ANNOTATION: f"LimitRanger plugin set: {'; '.join(added)}"}
    annotations = {**(meta.get("annotations") or {}), **note}
    return {**pod, "metadata": {**meta, "annotations": annotations}, "spec": spec}


def _filled(container: Content, defaults: Content, noun: str, added: list[str]) -> Content:
    """The container with the defaults that it lacks, which are described in ``added``."""
    own = container.get("resources") or {}
    filled = dict(own)
    for field, amounts in defaults.items():
        lacking = {name: amounts[name] for name in amounts if name not in (own.get(field) or {})}
        if lacking:
            filled[field] = {**(own.get(field) or {}), **lacking}
            names = ", ".join(sorted(lacking))
            added.append(f"{names} {field[:-1]} for {noun} {container.get('name', '')}")
    return container if filled == own else {**container, "resources": filled}


# ---- bounds ---------------------------------------------------------------------------------


def _of_pod(item: LimitRangeItem, pod: Pod) -> Iterator[str]:
    if item.type == CONTAINER_TYPE:
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
            requests = container_amounts(container, requests_part)
            yield from _violations(item, requests, container_amounts(container, limits_part))
    elif item.type == POD_TYPE:
        requests = limited_amounts(pod, requests_part)
        yield from _violations(item, requests, limited_amounts(pod, limits_part))


def _of_claim(item: LimitRangeItem, claim: object) -> Iterator[str]:
    """Only the requests of a claim are limited."""
    if item.type == CLAIM_TYPE:
        requests = amounts_of(cast(PersistentVolumeClaim, claim).spec.resources.requests)
        yield from _outside(item, "minimum", {"request": requests})
        yield from _outside(item, "maximum", {"request": requests})


def _violations(
    item: LimitRangeItem, requests: AmountsByResource, limits: AmountsByResource
) -> Iterator[str]:
    yield from _outside(item, "minimum", {"request": requests, "limit": limits})
    yield from _outside(item, "maximum", {"limit": limits, "request": requests})
    yield from _ratio(item, requests, limits)


def _bounds(quantities: Mapping[str, str | int | float] | None) -> list[tuple[str, Amount]]:
    return sorted(amounts_of(quantities).items())


def _outside(
    item: LimitRangeItem,
    end: Literal["minimum", "maximum"],
    declared: Mapping[str, AmountsByResource],
) -> Iterator[str]:
    """``declared``: "request" or "limit" → its amounts; the first must have each bounded amount."""
    bounds, sign = (item.min, -1) if end == "minimum" else (item.max, 1)
    for name, bound in _bounds(bounds):
        rule = f"{end} {name} usage per {item.type} is {bound}"
        for place, (noun, amounts) in enumerate(declared.items()):
            amount = amounts.get(name)
            if amount is None and not place:
                yield f"{rule}.  No {noun} is specified"
                break
            if amount is not None and sign * (_milli(amount) - _milli(bound)) > 0:
                yield f"{rule}, but {noun} is {amount}"
                break


def _ratio(
    item: LimitRangeItem, requests: AmountsByResource, limits: AmountsByResource
) -> Iterator[str]:
    for name, bound in _bounds(item.max_limit_request_ratio):
        rule = f"{name} max limit to request ratio per {item.type} is {bound}"
        request, limit = _milli(requests.get(name)), _milli(limits.get(name))
        if not request:
            yield f"{rule}, but no request is specified or request is 0"
        elif not limit:
            yield f"{rule}, but no limit is specified or limit is 0"
        elif limit / request * 1000 > float(_milli(bound)):
            yield f"{rule}, but provided ratio is {limit / request:f}"


def _milli(amount: Amount | None) -> int:
    """Thousandths, rounded up, as the plugin compares amounts; 0 for no amount."""
    return 0 if amount is None else -(-amount.nanos // NANOS_PER_MILLI)
