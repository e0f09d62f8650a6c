"""ResourceQuota: how much the objects of a namespace may use together.

The server keeps the usage of each quota itself, as the quota controller of a cluster does: it
follows from the objects that exist, whatever the status of the quota says. A pod that has ended or
whose grace period has passed for long no longer counts. The status is not written.

A quota is checked only when an object is created. Upstream:
apiserver/pkg/admission/plugin/resourcequota, pkg/controller/resourcequota.
"""

from collections.abc import Iterable, Mapping
from typing import cast, final

from bayplan.adapters.embedded.admission import quota_usage
from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.api_errors import ForbiddenError
from bayplan.adapters.embedded.versioned_store import StoredObject, VersionedStore
from bayplan.api.admission_objects import RESOURCE_QUOTA, ResourceQuota, ScopeRequirement
from bayplan.api.amounts import Amount, AmountsByResource, amounts_of, total
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM, POD, SERVICE, ApiObject, Pod
from bayplan.clock import Clock, epoch_of
from bayplan.objects.keys import Content, ObjectKey, object_key

_NOTHING = Amount(0)
#: Those that need no other objects.
_EVALUATORS: Mapping[str, quota_usage.Evaluator] = {
    POD: quota_usage.PodUsage(),
    SERVICE: quota_usage.ServiceUsage(),
    PERSISTENT_VOLUME_CLAIM: quota_usage.VolumeClaimUsage(),
}
#: No quota counts events.
_EVENT_KINDS = ("events.k8s.io/v1 Event", "v1 Event")


@final
class ResourceQuotaAdmission(AdmissionPlugin):
    """See the module."""

    name = "ResourceQuota"
    refused_kinds = None
    counts_usage = True

    def __init__(
        self, store: VersionedStore, clock: Clock, charged_pods: Iterable[Pod] = ()
    ) -> None:
        """``charged_pods``: pods that count, although the server does not have them."""
        self._store = store
        self._clock = clock
        self._charged_pods: dict[str, list[Pod]] = {}
        for pod in charged_pods:
            self._charged_pods.setdefault(pod.metadata.namespace or "", []).append(pod)
        pods = quota_usage.PodUsage()
        self._evaluators: dict[str, quota_usage.Evaluator] = {
            POD: pods,
            SERVICE: quota_usage.ServiceUsage(),
            PERSISTENT_VOLUME_CLAIM: quota_usage.VolumeClaimUsage(),
            RESOURCE_CLAIM: quota_usage.DeviceClaimUsage(store, pods),
        }
        #: Namespace → its quotas, by name.
        self._ledgers: dict[str, dict[str, _Ledger]] = {}
        store.observe(self._quota_changed, (RESOURCE_QUOTA,))
        store.observe(
            self._changed,
            ignored_kinds=(*_EVENT_KINDS, RESOURCE_QUOTA),
            is_active=lambda: bool(self._ledgers),
        )

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        ledgers = self._ledgers.get(key.namespace) if key.namespace else None
        if not ledgers or key.kind in _EVENT_KINDS:
            return
        evaluator = self._evaluator(key.kind)
        concerned: list[_Ledger] = []
        for name in sorted(ledgers):
            ledger = ledgers[name]
            if ledger.concerns(evaluator, decoded):
                missing = evaluator.missing(ledger.hard, decoded)
                if missing is not None:
                    raise ForbiddenError(key, f"failed quota: {name}: {missing}")
                concerned.append(ledger)
        if concerned:
            usage = evaluator.usage(content, decoded)
            for ledger in concerned:
                ledger.release_expired(self._clock.epoch_seconds())
                text = ledger.excess(usage)
                if text is not None:
                    raise ForbiddenError(key, text)

    def _evaluator(self, kind: str) -> quota_usage.Evaluator:
        evaluator = self._evaluators.get(kind)
        if evaluator is None:
            evaluator = self._evaluators[kind] = quota_usage.ObjectCount(kind)
        return evaluator

    # ---- usage ------------------------------------------------------------------------------

    def _quota_changed(self, before: StoredObject | None, after: StoredObject | None) -> None:
        key = cast(StoredObject, after or before).key
        ledgers = self._ledgers.setdefault(key.namespace, {})
        if after is None:
            ledgers.pop(key.name, None)
        else:
            ledgers[key.name] = self._new_ledger(cast(ResourceQuota, after.object), key.namespace)
        if not ledgers:
            del self._ledgers[key.namespace]
        self._count_quotas(key.namespace, before, after)
        self._store.renew_observers()

    def _new_ledger(self, quota: ResourceQuota, namespace: str) -> "_Ledger":
        ledger = _Ledger(quota)
        for pod in self._charged_pods.get(namespace, ()):
            key = object_key(POD, namespace, pod.metadata.name)
            ledger.charge(self._evaluator(POD), key, {}, pod)
        for kind in self._store.kinds():
            evaluator = self._evaluator(kind)
            if kind not in (*_EVENT_KINDS, RESOURCE_QUOTA) and evaluator.matching(ledger.hard):
                for stored in self._store.all(kind):
                    if stored.key.namespace == namespace:
                        ledger.charge(evaluator, stored.key, stored.content, stored.object)
        return ledger

    def _count_quotas(
        self, namespace: str, before: StoredObject | None, after: StoredObject | None
    ) -> None:
        """A quota may count quotas, itself included."""
        evaluator = self._evaluator(RESOURCE_QUOTA)
        quotas = [one for one in self._store.all(RESOURCE_QUOTA) if one.key.namespace == namespace]
        for ledger in self._ledgers.get(namespace, {}).values():
            for one in (before, *quotas):
                if one is not None:
                    ledger.release(one.key)
            for one in quotas:
                ledger.charge(evaluator, one.key, one.content, one.object)

    def _changed(self, before: StoredObject | None, after: StoredObject | None) -> None:
        stored = cast(StoredObject, after or before)
        ledgers = self._ledgers.get(stored.key.namespace)
        if not ledgers:
            return
        evaluator = self._evaluator(stored.key.kind)
        for ledger in ledgers.values():
            ledger.release(stored.key)
            if after is not None:
                ledger.charge(evaluator, after.key, after.content, after.object)


def may_count(quota: ResourceQuota, kind: str) -> bool:
    """Whether a quota counts objects of a kind. Claims for devices may follow from pods."""
    evaluator = _EVALUATORS.get(kind) or quota_usage.ObjectCount(kind)
    return kind == RESOURCE_CLAIM or bool(evaluator.matching(amounts_of(quota.spec.hard)))


class _Ledger:
    """One quota and what is charged to it."""

    def __init__(self, quota: ResourceQuota) -> None:
        self._name = quota.metadata.name
        self._scopes = _scopes(quota)
        self.hard = amounts_of(quota.spec.hard)
        self._used: AmountsByResource = {}
        self._charged: dict[ObjectKey, AmountsByResource] = {}
        #: Terminating pods → the time after which they no longer count, in seconds since 1970.
        self._expiries: dict[ObjectKey, float] = {}

    def concerns(self, evaluator: quota_usage.Evaluator, decoded: ApiObject) -> bool:
        """Whether the quota counts an object."""
        return bool(evaluator.matching(self.hard)) and all(
            evaluator.is_in(scope, decoded) for scope in self._scopes
        )

    def charge(
        self, evaluator: quota_usage.Evaluator, key: ObjectKey, content: Content, decoded: ApiObject
    ) -> None:
        if not self.concerns(evaluator, decoded):
            return
        self.release(key)
        usage = self._counted(evaluator.usage(content, decoded))
        self._charged[key] = usage
        self._used = total((self._used, usage))
        expiry = _expiry(decoded) if key.kind == POD else None
        if expiry is not None:
            self._expiries[key] = expiry

    def release(self, key: ObjectKey) -> None:
        self._expiries.pop(key, None)
        for name, amount in self._charged.pop(key, {}).items():
            used = self._used[name]
            self._used[name] = used._replace(nanos=used.nanos - amount.nanos)

    def release_expired(self, now: float) -> None:
        for key in [key for key, expiry in self._expiries.items() if expiry < now]:
            self.release(key)

    def excess(self, usage: AmountsByResource) -> str | None:
        """What is refused if an object uses so much; None: nothing."""
        requested = {name: a for name, a in self._counted(usage).items() if a.nanos}
        used = {name: self._used.get(name, _NOTHING) for name in requested}
        exceeded = [
            name
            for name, amount in requested.items()
            if used[name].nanos + amount.nanos > self.hard[name].nanos
        ]
        if not exceeded:
            return None
        texts = [_listed(amounts, exceeded) for amounts in (requested, used, self.hard)]
        parts = ("requested: {}, used: {}, limited: {}").format(*texts)
        return f"exceeded quota: {self._name}, {parts}"

    def _counted(self, usage: AmountsByResource) -> AmountsByResource:
        return {name: amount for name, amount in usage.items() if name in self.hard}


def _scopes(quota: ResourceQuota) -> list[ScopeRequirement]:
    scopes = [
        ScopeRequirement(scope_name=name, operator="Exists") for name in quota.spec.scopes or ()
    ]
    selector = quota.spec.scope_selector
    return scopes if selector is None else [*scopes, *(selector.match_expressions or ())]


def _listed(amounts: Mapping[str, Amount], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in sorted(names))


def _expiry(pod: ApiObject) -> float | None:
    """When a terminating pod no longer counts. Upstream: QuotaV1Pod, which adds the grace period to
    the end of the grace period."""
    meta = pod.metadata
    grace = meta.deletion_grace_period_seconds
    if meta.deletion_timestamp is None or grace is None:
        return None
    deleted = epoch_of(meta.deletion_timestamp)
    return None if deleted is None else deleted + grace
