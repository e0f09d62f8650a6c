"""Relax the rules of a pod: tolerations, node selector, affinity, spreading, ports, gates."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from bayplan.api.objects import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE,
    PRIORITY_CLASS,
    Node,
    PriorityClass,
    Taint,
)
from bayplan.api.selectors import tolerates
from bayplan.explain.diagnosis import Diagnosis
from bayplan.explain.fixes.edits import EditNotPossibleError, PodEdit, Spec, plain
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.printable import printable
from bayplan.state.pods import PodInfo

#: Taints that say that a node does not work: nobody should tolerate them to get a place.
_NODE_IS_BROKEN = "node.kubernetes.io/"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SKEW_STEPS_MAX = 12
_TAINT_LISTS_MAX = 5
_PRIORITY_CLASSES_MAX = 3
#: Values of one label that a selector is widened with.
_VALUES_MAX = 3


def rule_edits(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[PodEdit]:
    """One edit per rule, the mildest first."""
    spec = plain(diagnosis.pod.spec)
    yield from _gates(spec)
    yield from _tolerations(model, diagnosis)
    yield from _wider_selectors(model, diagnosis, spec)
    yield from _selector(spec)
    yield from _node_affinity(spec)
    yield from _spreading(spec)
    yield from _pod_affinity(spec)
    yield from _ports(spec)


# ---- gates and taints ---------------------------------------------------------------------------


def _gates(spec: Spec) -> Iterator[PodEdit]:
    names = [gate["name"] for gate in spec.get("schedulingGates") or ()]
    if not names:
        return

    def apply(changed: Spec) -> None:
        changed["schedulingGates"] = []

    listed = ", ".join(map(printable, names))
    plural = "s" if len(names) > 1 else ""
    yield PodEdit(f"remove the scheduling gate{plural} {listed}", apply, is_accepted_for_pods=True)


def untolerated(pod: PodInfo, node: Node) -> tuple[Taint, ...]:
    """The taints of a node that keep the pod out."""
    return tuple(
        taint
        for taint in node.spec.taints or ()
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE)
        and not any(tolerates(each, taint) for each in pod.shape.tolerations)
    )


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return printable(f"{taint.key}{value}:{taint.effect}")


def _tolerations(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[PodEdit]:
    lists: Counter[tuple[Taint, ...]] = Counter()
    for node in nodes_of(model, diagnosis.rejected):
        taints = untolerated(diagnosis.pod, node)
        if taints and not any(taint.key.startswith(_NODE_IS_BROKEN) for taint in taints):
            lists[taints] += 1
    order = sorted(lists, key=lambda taints: (len(taints), -lists[taints], str(taints)))
    for taints in order[:_TAINT_LISTS_MAX]:
        yield PodEdit(
            f"tolerate {' and '.join(map(taint_text, taints))}",
            _adding_tolerations(taints),
            is_accepted_for_pods=True,
        )


def _adding_tolerations(taints: Sequence[Taint]) -> Callable[[Spec], None]:
    def apply(changed: Spec) -> None:
        changed["tolerations"] = [
            *(changed.get("tolerations") or ()),
            *(
                {
                    "key": taint.key,
                    "operator": "Equal" if taint.value else "Exists",
                    **({"value": taint.value} if taint.value else {}),
                    "effect": taint.effect,
                }
                for taint in taints
            ),
        ]

    return apply


def nodes_of(model: ClusterModel, names: Any) -> list[Node]:
    """The nodes of these names that exist."""
    nodes = (model.get(NODE, "", name) for name in names)
    return [cast(Node, node) for node in nodes if node is not None]


# ---- node selector and affinity -----------------------------------------------------------------


def _wider_selectors(model: ClusterModel, diagnosis: Diagnosis, spec: Spec) -> Iterator[PodEdit]:
    """Accept a value that a rejected node has, the most frequent value first."""
    nodes = nodes_of(model, diagnosis.nodes_rejected_by(NodeAffinity.name))
    labels = [node.metadata.labels or {} for node in nodes]
    for key, value in sorted((spec.get("nodeSelector") or {}).items()):
        for other in _other_values(labels, key, (value,)):

            def change(changed: Spec, key: str = key, other: str = other) -> None:
                changed["nodeSelector"][key] = other

            text = f"change {key}={value} to {key}={other} in the node selector"
            yield PodEdit(printable(text), change)
    yield from _wider_terms(spec, labels)


def _wider_terms(spec: Spec, labels: Sequence[Mapping[str, str]]) -> Iterator[PodEdit]:
    """The same in the node affinity. ``labels``: of the rejected nodes."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms: list[dict[str, Any]] = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    for index, term in enumerate(terms):
        for expression in term.get("matchExpressions") or ():
            if expression.get("operator") != "In":
                continue
            for other in _other_values(labels, expression["key"], expression["values"]):

                def widen(
                    changed: Spec,
                    index: int = index,
                    expression: dict[str, Any] = expression,
                    other: str = other,
                ) -> None:
                    required = changed["affinity"]["nodeAffinity"][_REQUIRED]
                    listed = required["nodeSelectorTerms"][index]["matchExpressions"]
                    position = listed.index(expression)
                    listed[position] = {**expression, "values": [*expression["values"], other]}

                text = f"add {other} to {expression_text(expression)} in the node affinity"
                yield PodEdit(printable(text), widen)


def _other_values(
    labels: Sequence[Mapping[str, str]], key: str, values: Sequence[str]
) -> list[str]:
    counts = Counter(each[key] for each in labels if key in each and each[key] not in values)
    return sorted(counts, key=lambda value: (-counts[value], value))[:_VALUES_MAX]


def _selector(spec: Spec) -> Iterator[PodEdit]:
    labels = spec.get("nodeSelector") or {}
    for key, value in sorted(labels.items()):

        def apply(changed: Spec, key: str = key) -> None:
            del changed["nodeSelector"][key]

        yield PodEdit(f"drop {printable(key)}={printable(value)} from the node selector", apply)
    if len(labels) > 1:

        def apply_all(changed: Spec) -> None:
            changed["nodeSelector"] = {}

        yield PodEdit("drop the whole node selector", apply_all)


def _node_affinity(spec: Spec) -> Iterator[PodEdit]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms: list[dict[str, Any]] = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if any(term.get("matchFields") for term in terms):
        return  # a DaemonSet made the pod for this node
    for index, term in enumerate(terms):
        fields = [("matchExpressions", e) for e in term.get("matchExpressions") or []]
        for field, expression in fields if len(fields) > 1 else ():

            def apply(
                changed: Spec, i: int = index, field: str = field, e: dict[str, Any] = expression
            ) -> None:
                listed = changed["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"][i]
                listed[field] = [each for each in listed[field] if each != e]

            yield PodEdit(f"drop {expression_text(expression)} from the node affinity", apply)
    if terms:

        def apply_all(changed: Spec) -> None:
            del changed["affinity"]["nodeAffinity"][_REQUIRED]

        text = " or ".join(term_text(term) for term in terms)
        yield PodEdit(f"drop the required node affinity ({text})", apply_all)


def term_text(term: dict[str, Any]) -> str:
    expressions = [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
    return " and ".join(map(expression_text, expressions)) or "an empty term"


def expression_text(expression: dict[str, Any]) -> str:
    values = ", ".join(expression.get("values") or ())
    operator = expression.get("operator", "")
    bracketed = f" ({values})" if values else ""
    return printable(f"{expression.get('key', '')} {operator}{bracketed}")


# ---- spreading and affinity of pods -------------------------------------------------------------


def _spreading(spec: Spec) -> Iterator[PodEdit]:
    constraints = spec.get("topologySpreadConstraints") or ()
    for index, constraint in enumerate(constraints):
        if constraint.get("whenUnsatisfiable") != "DoNotSchedule":
            continue
        key, skew = printable(constraint["topologyKey"]), constraint["maxSkew"]
        for larger in range(skew + 1, skew + 1 + _SKEW_STEPS_MAX):

            def raise_skew(changed: Spec, i: int = index, larger: int = larger) -> None:
                changed["topologySpreadConstraints"][i]["maxSkew"] = larger

            yield PodEdit(f"raise maxSkew over {key} from {skew} to {larger}", raise_skew)

        def prefer(changed: Spec, i: int = index) -> None:
            relaxed = changed["topologySpreadConstraints"][i]
            relaxed["whenUnsatisfiable"] = "ScheduleAnyway"
            relaxed.pop("minDomains", None)

        yield PodEdit(f"prefer the spreading over {key} (ScheduleAnyway)", prefer)


def _pod_affinity(spec: Spec) -> Iterator[PodEdit]:
    for field, what in (("podAffinity", "affinity"), ("podAntiAffinity", "anti-affinity")):
        rules: dict[str, Any] = (spec.get("affinity") or {}).get(field) or {}
        terms: list[dict[str, Any]] = rules.get(_REQUIRED) or []
        for term in terms:

            def apply(changed: Spec, field: str = field, term: dict[str, Any] = term) -> None:
                listed = changed["affinity"][field]
                remaining = [each for each in listed[_REQUIRED] if each != term]
                if len(remaining) == len(listed[_REQUIRED]):
                    raise EditNotPossibleError("the term is not there")
                listed[_REQUIRED] = remaining

            where = printable(term.get("topologyKey", ""))
            selector = selector_text(term.get("labelSelector"))
            yield PodEdit(f"drop the required {what} to {selector} over {where}", apply)


def selector_text(selector: dict[str, Any] | None) -> str:
    if selector is None:
        return "no pod"
    labels = [
        f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())
    ]
    labels += [expression_text(each) for each in selector.get("matchExpressions") or ()]
    return printable(", ".join(labels)) or "all pods"


# ---- ports and priority -------------------------------------------------------------------------


def _ports(spec: Spec) -> Iterator[PodEdit]:
    for index, container in enumerate(spec["containers"]):
        ports: list[dict[str, Any]] = container.get("ports") or []
        for port in ports:
            number = port.get("hostPort")
            if not number:
                continue

            def apply(changed: Spec, i: int = index, number: int = number) -> None:
                for each in changed["containers"][i]["ports"]:
                    if each.get("hostPort") == number:
                        del each["hostPort"]
                if changed.get("hostNetwork"):
                    raise EditNotPossibleError("a pod in the host's network needs its ports")

            yield PodEdit(f"drop the host port {number}", apply)


def priority_edits(model: ClusterModel, diagnosis: Diagnosis) -> Iterator[PodEdit]:
    """A priority class that lets the pod preempt others, the lowest first."""
    pod = diagnosis.pod
    if pod.spec.preemption_policy == "Never":
        return
    classes = [each for each in model.objects(PRIORITY_CLASS) if isinstance(each, PriorityClass)]
    higher = sorted(
        (each.value or 0, each.metadata.name)
        for each in classes
        if (each.value or 0) > pod.priority
        and each.preemption_policy != "Never"
        and not each.metadata.name.startswith("system-")
    )
    for value, name in higher[:_PRIORITY_CLASSES_MAX]:

        def apply(changed: Spec, name: str = name, value: int = value) -> None:
            changed["priorityClassName"], changed["priority"] = name, value
            changed.pop("preemptionPolicy", None)

        yield PodEdit(f"give it the priority class {printable(name)}, so that it preempts", apply)


def device_edits(diagnosis: Diagnosis) -> Iterator[PodEdit]:
    """Do without a device claim: only where nothing else helps."""
    for claim in diagnosis.pod.spec.resource_claims or ():

        def apply(changed: Spec, name: str = claim.name) -> None:
            remaining = [each for each in changed["resourceClaims"] if each["name"] != name]
            changed["resourceClaims"] = remaining
            for container in (*changed["containers"], *(changed.get("initContainers") or ())):
                resources = container.get("resources") or {}
                if resources.get("claims"):
                    used = [each for each in resources["claims"] if each["name"] != name]
                    resources["claims"] = used

        yield PodEdit(f"drop the device claim {printable(claim.name)}", apply)
