"""Change the rules of a pod: tolerations, node selector, affinity, spreading, ports.

A rule that no node and no pod can satisfy is probably a typing error, so the nearest existing value
comes first. No edit removes a gate, because whoever set the gate removes it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from bayplan.api.objects import (
    DEPLOYMENT,
    NODE,
    POD,
    PRIORITY_CLASS,
    REQUIRED,
    ApiObject,
    Node,
    PriorityClass,
    Taint,
)
from bayplan.explain.diagnosis import NodeDiagnosis
from bayplan.explain.fixes.edits import EditNotPossibleError, Harm, PodEdit, Spec, plain
from bayplan.explain.fixes.owners import Owners
from bayplan.explain.fixes.taints import (
    CONTROL_PLANE_NOTE,
    harm_of_tolerating,
    taint_text,
    untolerated,
)
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.workloads import TEMPLATE_HASH_LABEL
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.printable import printable
from bayplan.state.pods import PodInfo

#: How much of two words must agree so that one may be a typing error of the other.
_TYPO_CUTOFF = 0.7
_SKEW_STEPS_MAX = 12
_TAINT_LISTS_MAX = 5
_PRIORITY_CLASSES_MAX = 3
#: The number of values of one label that widen a selector.
_VALUES_MAX = 3

#: Key of a label → value → the number of objects that have it.
LabelCounts = Mapping[str, Mapping[str, int]]


def rule_edits(model: ClusterModel, owners: Owners, diagnosis: NodeDiagnosis) -> Iterator[PodEdit]:
    """One edit per rule, the mildest first."""
    spec = plain(diagnosis.pod.spec)
    yield from _tolerations(model, diagnosis)
    yield from _corrected_selectors(model, spec)
    yield from _wider_selectors(model, diagnosis, spec)
    yield from _selector(spec)
    yield from _node_affinity(spec)
    yield from _spread_policies(model, owners, diagnosis.pod, spec)
    yield from _spreading(spec)
    yield from _corrected_affinity(model, diagnosis.pod, spec)
    yield from _hash_in_anti_affinity(owners, diagnosis.pod, spec)
    yield from _pod_affinity(spec)
    yield from _ports(spec)


# ---- taints -------------------------------------------------------------------------------------


def _tolerations(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[PodEdit]:
    lists: Counter[tuple[Taint, ...]] = Counter()
    harms: dict[tuple[Taint, ...], Harm] = {}
    tainted = (node for node in nodes_of(model, diagnosis.rejected) if node.spec.taints)
    for node in tainted:
        taints = untolerated(diagnosis.pod, node)
        costs = [harm_of_tolerating(diagnosis.pod, node, taint) for taint in taints]
        if costs and None not in costs:
            lists[taints] += 1
            harms[taints] = max(harm for harm in costs if harm is not None)
    order = sorted(lists, key=lambda taints: (len(taints), -lists[taints], str(taints)))
    for taints in order[:_TAINT_LISTS_MAX]:
        yield PodEdit(
            f"tolerate {' and '.join(map(taint_text, taints))}",
            _adding_tolerations(taints),
            harms[taints],
            is_accepted_for_pods=True,
            note=CONTROL_PLANE_NOTE if harms[taints] is Harm.RISKY else "",
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
    by_name = model.once(_nodes_by_name)
    return [by_name[name] for name in names if name in by_name]


def _nodes_by_name(model: ClusterModel) -> dict[str, Node]:
    return {node.metadata.name: cast(Node, node) for node in model.objects(NODE)}


# ---- node selector and affinity -----------------------------------------------------------------


def _corrected_selectors(model: ClusterModel, spec: Spec) -> Iterator[PodEdit]:
    """The nearest label that nodes have, for a label that no node has."""
    selector = sorted((spec.get("nodeSelector") or {}).items())
    counts = node_label_counts(model) if selector else {}
    for key, value in selector:
        if value in counts.get(key, ()):
            continue
        for other_key, other in _nearest_labels(counts, key, value):

            def change(
                changed: Spec, key: str = key, other_key: str = other_key, other: str = other
            ) -> None:
                del changed["nodeSelector"][key]
                changed["nodeSelector"][other_key] = other

            text = f"change {key}={value} to {other_key}={other} in the node selector"
            yield PodEdit(printable(text), change, Harm.NONE)


def node_label_counts(model: ClusterModel) -> LabelCounts:
    """How many nodes have each label."""
    return model.once(_node_labels)


def _node_labels(model: ClusterModel) -> LabelCounts:
    return _label_counts(model.objects(NODE))


def _pod_labels(model: ClusterModel) -> LabelCounts:
    return _label_counts(model.objects(POD))


def _label_counts(objects: Iterable[ApiObject]) -> LabelCounts:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for each in objects:
        for key, value in (each.metadata.labels or {}).items():
            counts[key][value] += 1
    return dict(counts)


def _nearest_labels(counts: LabelCounts, key: str, value: str) -> list[tuple[str, str]]:
    """Labels that differ from a label by a typing error, the nearest first."""
    same_key = sorted(counts.get(key, ()))
    same_value = sorted(other for other, values in counts.items() if value in values)
    nearest = get_close_matches(value, same_key, n=1, cutoff=_TYPO_CUTOFF)
    keys = get_close_matches(key, same_value, n=1, cutoff=_TYPO_CUTOFF)
    return [*((key, each) for each in nearest), *((each, value) for each in keys)]


def _wider_selectors(
    model: ClusterModel, diagnosis: NodeDiagnosis, spec: Spec
) -> Iterator[PodEdit]:
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
    """Accept a value in the node affinity that a rejected node has. ``labels``: those of the
    rejected nodes."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms: list[dict[str, Any]] = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
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
                    required = changed["affinity"]["nodeAffinity"][REQUIRED]
                    listed = required["nodeSelectorTerms"][index]["matchExpressions"]
                    position = listed.index(expression)
                    listed[position] = {**expression, "values": [*expression["values"], other]}

                text = f"add {other} to {expression_text(expression)} in the node affinity"
                is_typo = bool(get_close_matches(other, expression["values"], 1, _TYPO_CUTOFF))
                harm = Harm.NONE if is_typo else Harm.RULE
                yield PodEdit(printable(text), widen, harm)


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
    terms: list[dict[str, Any]] = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if any(term.get("matchFields") for term in terms):
        return  # A DaemonSet made the pod for this node.
    for index, term in enumerate(terms):
        fields = [("matchExpressions", e) for e in term.get("matchExpressions") or []]
        for field, expression in fields if len(fields) > 1 else ():

            def apply(
                changed: Spec, i: int = index, field: str = field, e: dict[str, Any] = expression
            ) -> None:
                listed = changed["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][i]
                listed[field] = [each for each in listed[field] if each != e]

            yield PodEdit(f"drop {expression_text(expression)} from the node affinity", apply)
    if terms:

        def apply_all(changed: Spec) -> None:
            del changed["affinity"]["nodeAffinity"][REQUIRED]

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


def _spread_policies(
    model: ClusterModel, owners: Owners, pod: PodInfo, spec: Spec
) -> Iterator[PodEdit]:
    """Change what a constraint counts: only nodes that the pod may use, only pods of its revision,
    or only as many domains as there are."""
    constraints = spec.get("topologySpreadConstraints") or ()
    for index, constraint in enumerate(constraints):
        if constraint.get("whenUnsatisfiable") != "DoNotSchedule":
            continue
        where = f"of the spreading over {printable(constraint['topologyKey'])}"
        if constraint.get("nodeTaintsPolicy") != "Honor":
            text = f"set nodeTaintsPolicy: Honor {where}: nodes that it cannot use do not count"
            yield PodEdit(text, _setting(index, "nodeTaintsPolicy", "Honor"), Harm.NONE)
        if constraint.get("nodeAffinityPolicy") == "Ignore":
            text = f"set nodeAffinityPolicy: Honor {where}: nodes that it cannot use do not count"
            yield PodEdit(text, _setting(index, "nodeAffinityPolicy", "Honor"), Harm.NONE)
        keys: list[str] = list(constraint.get("matchLabelKeys") or ())
        if _is_of_deployment(owners, pod) and TEMPLATE_HASH_LABEL not in keys:
            text = f"set matchLabelKeys: [{TEMPLATE_HASH_LABEL}] {where}: old pods do not count"
            yield PodEdit(
                text, _setting(index, "matchLabelKeys", [*keys, TEMPLATE_HASH_LABEL]), Harm.NONE
            )
        yield from _fewer_domains(model, index, constraint)


def _fewer_domains(
    model: ClusterModel, index: int, constraint: Mapping[str, Any]
) -> Iterator[PodEdit]:
    key, wanted = constraint["topologyKey"], constraint.get("minDomains") or 1
    count = len(node_label_counts(model).get(key, ()))
    for fewer in range(min(count, wanted - 1), 0, -1):
        text = f"lower minDomains of the spreading over {printable(key)} from {wanted} to {fewer}"
        harm = Harm.NONE if wanted > count else Harm.RULE
        yield PodEdit(
            text, _setting(index, "minDomains", fewer), harm, family=f"minDomains {index}"
        )


def _setting(index: int, field: str, value: Any) -> Callable[[Spec], None]:
    def apply(changed: Spec) -> None:
        changed["topologySpreadConstraints"][index][field] = value

    return apply


def _is_of_deployment(owners: Owners, pod: PodInfo) -> bool:
    owner = owners.of(pod)
    return owner is not None and owner.kind == DEPLOYMENT and TEMPLATE_HASH_LABEL in pod.labels


def _spreading(spec: Spec) -> Iterator[PodEdit]:
    constraints = spec.get("topologySpreadConstraints") or ()
    for index, constraint in enumerate(constraints):
        if constraint.get("whenUnsatisfiable") != "DoNotSchedule":
            continue
        key, skew = printable(constraint["topologyKey"]), constraint["maxSkew"]
        for larger in range(skew + 1, skew + 1 + _SKEW_STEPS_MAX):

            def raise_skew(changed: Spec, i: int = index, larger: int = larger) -> None:
                changed["topologySpreadConstraints"][i]["maxSkew"] = larger

            text = f"raise maxSkew over {key} from {skew} to {larger}"
            yield PodEdit(text, raise_skew, family=f"maxSkew {index}")

        def prefer(changed: Spec, i: int = index) -> None:
            relaxed = changed["topologySpreadConstraints"][i]
            relaxed["whenUnsatisfiable"] = "ScheduleAnyway"
            relaxed.pop("minDomains", None)

        yield PodEdit(f"prefer the spreading over {key} (ScheduleAnyway)", prefer)


def _corrected_affinity(model: ClusterModel, pod: PodInfo, spec: Spec) -> Iterator[PodEdit]:
    """The nearest label that pods have, for an affinity to pods that do not exist."""
    rules: dict[str, Any] = (spec.get("affinity") or {}).get("podAffinity") or {}
    terms: list[dict[str, Any]] = rules.get(REQUIRED) or []
    counts = model.once(_pod_labels) if terms else {}
    for index, term in enumerate(terms):
        labels = (term.get("labelSelector") or {}).get("matchLabels") or {}
        for key, value in sorted(labels.items()):
            if value in counts.get(key, ()):
                continue
            for other_key, other in _nearest_labels(counts, key, value):

                def change(
                    changed: Spec,
                    index: int = index,
                    old: str = key,
                    new: tuple[str, str] = (other_key, other),
                ) -> None:
                    term = changed["affinity"]["podAffinity"][REQUIRED][index]
                    del term["labelSelector"]["matchLabels"][old]
                    term["labelSelector"]["matchLabels"][new[0]] = new[1]

                text = f"change {key}={value} to {other_key}={other} in the required affinity"
                yield PodEdit(printable(text), change, Harm.NONE)


def _hash_in_anti_affinity(owners: Owners, pod: PodInfo, spec: Spec) -> Iterator[PodEdit]:
    """Let anti-affinity ignore old pods, so that they do not keep new pods away during a
    rollout."""
    if not _is_of_deployment(owners, pod):
        return
    rules: dict[str, Any] = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    for index, term in enumerate(rules.get(REQUIRED) or ()):
        keys: list[str] = list(term.get("matchLabelKeys") or ())
        if TEMPLATE_HASH_LABEL in keys:
            continue

        def add(changed: Spec, index: int = index, keys: list[str] = keys) -> None:
            term = changed["affinity"]["podAntiAffinity"][REQUIRED][index]
            term["matchLabelKeys"] = [*keys, TEMPLATE_HASH_LABEL]

        where = printable(term.get("topologyKey", ""))
        text = f"set matchLabelKeys: [{TEMPLATE_HASH_LABEL}] of the anti-affinity over {where}"
        yield PodEdit(f"{text}: pods of other revisions do not count", add, Harm.NONE)


def _pod_affinity(spec: Spec) -> Iterator[PodEdit]:
    for field, what in (("podAffinity", "affinity"), ("podAntiAffinity", "anti-affinity")):
        rules: dict[str, Any] = (spec.get("affinity") or {}).get(field) or {}
        terms: list[dict[str, Any]] = rules.get(REQUIRED) or []
        for term in terms:

            def apply(changed: Spec, field: str = field, term: dict[str, Any] = term) -> None:
                listed = changed["affinity"][field]
                remaining = [each for each in listed[REQUIRED] if each != term]
                if len(remaining) == len(listed[REQUIRED]):
                    raise EditNotPossibleError("the term is not there")
                listed[REQUIRED] = remaining

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


def priority_edits(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[PodEdit]:
    """A priority class that lets the pod preempt others; the lowest one comes first."""
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

        text = f"give it the priority class {printable(name)}, so that it preempts"
        yield PodEdit(text, apply, Harm.WORKLOAD)


def device_edits(diagnosis: NodeDiagnosis) -> Iterator[PodEdit]:
    """Remove a device claim, only if nothing else helps."""
    for claim in diagnosis.pod.spec.resource_claims or ():

        def apply(changed: Spec, name: str = claim.name) -> None:
            remaining = [each for each in changed["resourceClaims"] if each["name"] != name]
            changed["resourceClaims"] = remaining
            for container in (*changed["containers"], *(changed.get("initContainers") or ())):
                resources = container.get("resources") or {}
                if resources.get("claims"):
                    used = [each for each in resources["claims"] if each["name"] != name]
                    resources["claims"] = used

        yield PodEdit(f"drop the device claim {printable(claim.name)}", apply, Harm.NEW_KIND)
