"""Faults in the rules themselves: a plugin counts, compares or reads something wrong.

Each of them leaves the plugin in force. So most decisions stay right, and a checker finds the fault
only if it computes the same rule by other means, for the nodes that are rejected, too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from bayplan.api import affinity, pod_requests, selectors
from bayplan.plugins.default_preemption import victims
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.pod_topology_spread import constraints
from bayplan.plugins.volume_binding import claims
from bayplan.queue.nominator import Nominator
from bayplan.state import host_ports
from bayplan.state.domain_counts import PodSet
from bayplan.state.host_ports import HostPort, HostPortIndex

Patch = pytest.MonkeyPatch


# ---- resources and ports --------------------------------------------------------------------


def resizes_are_added_up(patch: Patch) -> None:
    """The allocated amounts are added to the requested ones; the largest of them counts."""
    reported_of = pod_requests._container_statuses

    def reported(pod: Any, defaults: Any) -> Any:
        both = reported_of(pod, defaults)
        if both is None:
            return None
        requested = pod_requests._aggregate(pod, pod_requests._requests)
        allocated = {name: requested.get(name, 0) + amount for name, amount in both[0].items()}
        return allocated, both[1]

    patch.setattr(pod_requests, "_container_statuses", reported)


def init_containers_request_nothing(patch: Patch) -> None:
    def of_containers(pod: Any, requests_of: Any) -> dict[str, int]:
        total: dict[str, int] = {}
        for container in pod.spec.containers or ():
            pod_requests._add(total, requests_of(container))
        return total

    patch.setattr(pod_requests, "_aggregate", of_containers)


def ports_of_sidecars_are_ignored(patch: Patch) -> None:
    def of_containers(spec: Any) -> Iterator[Any]:
        yield from spec.containers or ()

    patch.setattr(host_ports, "_lasting", of_containers)


def a_port_is_released_twice(patch: Patch) -> None:
    remove = HostPortIndex.remove

    def twice(self: HostPortIndex, row: int, port: HostPort) -> None:
        users = self._users[port.protocol, port.port][row]
        if users[port.ip] > 1:
            users[port.ip] -= 1
        remove(self, row, port)

    patch.setattr(HostPortIndex, "remove", twice)


def all_protocols_are_one(patch: Patch) -> None:
    def port_of(port: Any) -> HostPort:
        return HostPort(port.host_ip or "0.0.0.0", "TCP", port.host_port or 0)

    patch.setattr(host_ports, "_host_port", port_of)


# ---- taints and terms -----------------------------------------------------------------------


def the_effect_of_a_toleration_is_ignored(patch: Patch) -> None:
    tolerates = selectors.tolerates

    def without_effect(toleration: Any, taint: Any) -> bool:
        return tolerates(msgspec.structs.replace(toleration, effect=None), taint)

    patch.setattr(selectors, "tolerates", without_effect)


def the_namespaces_of_terms_are_ignored(patch: Patch) -> None:
    term_of = affinity.affinity_term

    def in_own_namespace(term: Any, namespace: str) -> Any:
        own = msgspec.structs.replace(term, namespaces=None, namespace_selector=None)
        return term_of(own, namespace)

    patch.setattr(affinity, "affinity_term", in_own_namespace)


# ---- spreading ------------------------------------------------------------------------------


def terminating_pods_count_in_spreading(patch: Patch) -> None:
    def all_pods(*arguments: Any, with_terminating: bool) -> PodSet:
        return PodSet(*arguments, with_terminating=True)

    patch.setattr(constraints, "PodSet", all_pods)


def _with_constraints(patch: Patch, **fields: Any) -> None:
    """Constraints are compiled with other fields than the pod has."""
    compiled = constraints._compiled

    def changed(*arguments: Any, **options: Any) -> Any:
        return msgspec.structs.replace(compiled(*arguments, **options), **fields)

    patch.setattr(constraints, "_compiled", changed)


min_domains_is_ignored = partial(_with_constraints, min_domains=1)
node_taints_policy_is_ignored = partial(_with_constraints, honors_taints=False)
node_affinity_policy_is_ignored = partial(_with_constraints, honors_affinity=False)


# ---- preemption and nominations -------------------------------------------------------------


def budgets_are_ignored(patch: Patch) -> None:
    patch.setattr(Budgets, "violated_by", lambda self, pods: [False] * len(pods))


def no_pod_is_reprieved(patch: Patch) -> None:
    """All pods of lower priority are victims."""

    def all_of(tried: Any, possible: Any, violations: Any) -> Any:
        pods = tuple(pod for unit in possible for pod in unit.pods)
        return victims.Victims(pods, sum(violations))

    patch.setattr(victims, "_reprieved", all_of)


def nominated_pods_are_ignored(patch: Patch) -> None:
    patch.setattr(Nominator, "nominated_pods_for_node", lambda *_: [])


def nominations_of_deleted_pods_stay(patch: Patch) -> None:
    patch.setattr(Nominator, "delete_nominated_pod_if_exists", lambda *_: None)


# ---- volumes --------------------------------------------------------------------------------


def allowed_topologies_are_ignored(patch: Patch) -> None:
    def everywhere(self: Any, storage_class: Any) -> Any:
        if storage_class.provisioner == claims.NO_PROVISIONER:
            return self._none
        return self._all()

    patch.setattr(claims._Search, "_may_make", everywhere)
