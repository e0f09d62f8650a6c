"""Drawn clusters with devices, for the feature gates of devices."""

from collections.abc import Callable
from typing import Any

from bayplan.rng import Stream

Json = dict[str, Any]

DRIVER = "gpu.example.com"
#: Draws one device by its number, and one claim's spec.
Device = Callable[[Stream, int], Json]
Claim = Callable[[Stream], Json]


def device(name: str, **fields: Any) -> Json:
    return {"name": name, **fields}


def request(name: str = "r", **fields: Any) -> Json:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **fields}
    if exactly["allocationMode"] == "All":
        del exactly["count"]
    return {"name": name, "exactly": exactly}


def devices(*requests: Json, constraints: list[Json] | None = None) -> Json:
    more = {"constraints": constraints} if constraints else {}
    return {"devices": {"requests": list(requests), **more}}


def cluster(
    draws: Stream,
    device_of: Device,
    claim_of: Claim,
    *,
    device_count: int = 4,
    claim_count: int = 3,
) -> Json:
    """Three nodes with a slice each, and pods that use one claim each."""
    nodes, slices = [], []
    for index in range(3):
        name = f"n{index}"
        nodes.append(node(name))
        count = draws.randint(1, device_count)
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [device_of(draws, number) for number in range(count)],
        }
        slices.append({"metadata": {"name": f"s{index}"}, "spec": spec})
    claims = [
        {"metadata": {"name": f"c{i}", "namespace": "default"}, "spec": claim_of(draws)}
        for i in range(claim_count)
    ]
    return {
        "cluster": {
            "nodes": nodes,
            "deviceClasses": [{"metadata": {"name": "gpu"}, "spec": {}}],
            "resourceSlices": slices,
            "resourceClaims": claims,
        },
        "pending": [pod(f"p{i}", f"c{i}") for i in range(claim_count)],
    }


def node(name: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, claim: str) -> Json:
    container = {
        "name": "c",
        "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "x"}]},
    }
    spec = {
        "containers": [container],
        "resourceClaims": [{"name": "x", "resourceClaimName": claim}],
    }
    return {"metadata": {"name": name}, "spec": spec}


# ---- events --------------------------------------------------------------------------------


def claim_event(draws: Stream) -> Json:
    """A pod that waits for a claim, and a change of this claim or of another one."""
    drawn = cluster(draws, plain, lambda draws: devices(request()), claim_count=2)
    [waiting, _] = drawn.pop("pending")
    claims = drawn["cluster"]["resourceClaims"]
    which = draws.randrange(2)
    action = draws.choice(("Add", "Update", "Update", "Delete"))
    changed = claims.pop(which)
    before, after = ({**changed, **_allocated(draws)} for _ in range(2))
    event: Json = {"resource": "ResourceClaim", "action": action}
    event["old"] = None if action == "Add" else before
    event["new"] = None if action == "Delete" else after
    return {**drawn, "pod": waiting, "event": event}


def _allocated(draws: Stream) -> Json:
    if draws.random() < 0.5:
        return {}
    result = {"request": "r", "driver": DRIVER, "pool": "n0", "device": "d0"}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


# ---- gates that are off by default ----------------------------------------------------------


_SLOTS = "gpu.example.com/slots"


def listed(draws: Stream, number: int) -> Json:
    """A device whose attributes are lists, or not."""
    kind, scalar = draws.choice((("int", 1), ("string", "1"), ("bool", True)))
    values = {"int": (1, 2, 3), "string": ("1", "2", "3"), "bool": (True, False)}[kind]
    some = draws.sample(values, draws.randint(1, len(values)))
    value = draws.choice(({f"{kind}s": some}, {f"{kind}s": some}, {kind: scalar}))
    return device(f"d{number}", attributes={"slots": value})


def list_attributes(draws: Stream) -> Json:
    """Constraints over lists, and selectors that read them."""

    def claim(draws: Stream) -> Json:
        kind = draws.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
        expression = draws.choice(
            (
                f'device.attributes["{DRIVER}"].slots.includes(1)',
                f'device.attributes["{DRIVER}"].slots.includes("2")',
            )
        )
        selectors = [{"cel": {"expression": expression}}] if draws.random() < 0.3 else []
        asked = request(count=draws.randint(1, 3), selectors=selectors)
        return devices(asked, constraints=[{kind: _SLOTS}])

    return cluster(draws, listed, claim, device_count=6)


def derived_attributes(draws: Stream) -> Json:
    """Constraints over attributes that expressions compute from published ones."""
    name = "example.com/family"
    expressions = (
        f'device.attributes["{DRIVER}"].model.substring(0, 1)',
        f'device.attributes["{DRIVER}"].index % 2',
        f'device.attributes["{DRIVER}"].index > 1',
        f'[device.attributes["{DRIVER}"].index]',
        f'[int(device.attributes["{DRIVER}"].index % 2), 7]',
        f'device.attributes["{DRIVER}"].missing',
        f'semver("1.2." + string(device.attributes["{DRIVER}"].index))',
    )

    def modelled(draws: Stream, number: int) -> Json:
        model = draws.choice(("a100", "a10", "h100"))
        attributes = {"model": {"string": model}, "index": {"int": number}}
        return device(f"d{number}", attributes=attributes)

    def claim(draws: Stream) -> Json:
        kind = draws.choice(("matchAttribute", "distinctAttribute"))
        derived = [{"name": name, "expression": draws.choice(expressions)}]
        asked = request(count=draws.randint(1, 3), derivedAttributes=derived)
        return devices(asked, constraints=[{kind: name}])

    return cluster(draws, modelled, claim, device_count=5)


def compatibility_groups(draws: Stream) -> Json:
    """Partitions that may be used together only with those of a common group."""

    def part(draws: Stream, number: int) -> Json:
        groups = draws.sample(("a", "b", "c"), draws.randint(0, 2))
        taken: Json = {"counterSet": "set", "counters": {"slots": {"value": "1"}}}
        if groups:
            taken["compatibilityGroups"] = groups
        return device(f"d{number}", consumesCounters=[taken])

    def claim(draws: Stream) -> Json:
        return devices(request(count=draws.randint(1, 2)))

    drawn = cluster(draws, part, claim, device_count=6)
    _with_counters(drawn, "6")
    return drawn


def optional_operations(draws: Stream) -> Json:
    """Devices that need no operations of the kubelet, and nodes that can do without them."""
    drawn = cluster(draws, plain, lambda draws: devices(request()))
    for each in drawn["cluster"]["resourceSlices"]:
        if draws.random() < 0.6:
            each["spec"]["skipNodeOperations"] = ["NodePrepareResources"]
    for each in drawn["cluster"]["nodes"]:
        if draws.random() < 0.5:
            each["status"]["declaredFeatures"] = ["DRAOptionalNodeOperations"]
    return drawn


def fractions(draws: Stream) -> Json:
    """Shared capacity in thousandths."""

    def shared(draws: Stream, number: int) -> Json:
        step, minimum = draws.choice((("100m", "100m"), ("250m", "500m"), ("1", "1"), ("3m", "0")))
        valid = {"min": minimum, "step": step, "max": draws.choice(("2", "1500m"))}
        policy = {"default": minimum, "validRange": valid}
        capacity = {"cores": {"value": "2", "requestPolicy": policy}}
        return device(f"d{number}", allowMultipleAllocations=True, capacity=capacity)

    def claim(draws: Stream) -> Json:
        asked = request()
        amount = draws.choice(("10m", "150m", "600m", "1", "1250m", "1500u"))
        asked["exactly"]["capacity"] = {"requests": {"cores": amount}}
        return devices(asked)

    return cluster(draws, shared, claim, device_count=2)


# ---- gates that are on by default ----------------------------------------------------------


def plain(draws: Stream, number: int) -> Json:
    return device(f"d{number}", attributes={"model": {"string": draws.choice("ab")}})


def admin_access(draws: Stream) -> Json:
    def claim(draws: Stream) -> Json:
        return devices(request(adminAccess=draws.choice((True, False))))

    return cluster(draws, plain, claim)


def alternatives(draws: Stream) -> Json:
    def claim(draws: Stream) -> Json:
        if draws.random() < 0.3:
            return devices(request())
        counts = draws.sample((1, 2, 3), 2)
        return devices(
            {
                "name": "r",
                "firstAvailable": [
                    {
                        "name": f"a{count}",
                        "deviceClassName": "gpu",
                        "allocationMode": "ExactCount",
                        "count": count,
                    }
                    for count in counts
                ],
            }
        )

    return cluster(draws, plain, claim)


def taints(draws: Stream) -> Json:
    def tainted(draws: Stream, number: int) -> Json:
        effect = draws.choice(("NoSchedule", "NoExecute", "None"))
        return device(f"d{number}", taints=[{"key": draws.choice("ab"), "effect": effect}])

    def claim(draws: Stream) -> Json:
        tolerated = [{"key": "a", "operator": "Exists"}] if draws.random() < 0.5 else []
        return devices(request(tolerations=tolerated))

    return cluster(draws, tainted, claim)


def taint_rules(draws: Stream) -> Json:
    drawn = cluster(draws, plain, lambda draws: devices(request()))
    drawn["cluster"]["deviceTaintRules"] = [
        {
            "metadata": {"name": "rule"},
            "spec": {
                "deviceSelector": {"driver": DRIVER, "pool": f"n{draws.randrange(3)}"},
                "taint": {"key": "a", "effect": "NoSchedule"},
            },
        }
    ]
    return drawn


def binding_conditions(draws: Stream) -> Json:
    def prepared(draws: Stream, number: int) -> Json:
        conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
        return device(f"d{number}", **(conditions if draws.random() < 0.6 else {}))

    return cluster(draws, prepared, lambda draws: devices(request()))


def shared_capacity(draws: Stream) -> Json:
    def shared(draws: Stream, number: int) -> Json:
        return device(
            f"d{number}",
            allowMultipleAllocations=draws.choice((True, False)),
            capacity={"memory": {"value": "10Gi"}},
        )

    def claim(draws: Stream) -> Json:
        amount = draws.choice((None, "4Gi", "8Gi"))
        asked = request()
        if amount:
            asked["exactly"]["capacity"] = {"requests": {"memory": amount}}
        return devices(asked)

    return cluster(draws, shared, claim, device_count=2)


_TAKEN = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi")


def node_allocatable(draws: Stream) -> Json:
    """Devices that stand for resources of their nodes, or cost some of them."""

    def amount(name: str) -> str:
        return draws.choice(("100m", "1", "1500m") if name == "cpu" else ("64Mi", "1Gi", "3G"))

    def resource(name: str) -> Json:
        made: Json = {}
        if draws.random() < 0.6:
            made["mapping"] = draws.choice(
                (
                    {"deviceMultiplier": amount(name)},
                    {"capacityKey": "units", "capacityMultiplier": amount(name)},
                    {"capacityKey": "units"},
                    {"capacityKey": "absent"},
                )
            )
        if draws.random() < 0.6:
            made["overhead"] = draws.choice(
                (
                    {"perPod": amount(name)},
                    {"perContainer": amount(name)},
                    {"perPod": amount(name), "perContainer": amount(name)},
                    {},
                )
            )
        return made

    def taking(draws: Stream, number: int) -> Json:
        names = draws.sample(_TAKEN, draws.choice((0, 1, 1, 2)))
        made = device(f"d{number}", capacity={"units": {"value": "4"}})
        if draws.random() < 0.8:
            made["allowMultipleAllocations"] = True
        if names:
            made["nodeAllocatableResources"] = {name: resource(name) for name in names}
        return made

    def claim(draws: Stream) -> Json:
        asked = request(count=draws.choice((1, 1, 2)))
        if draws.random() < 0.7:
            units = draws.choice(("1", "2", "500m"))
            asked["exactly"]["capacity"] = {"requests": {"units": units}}
        return devices(asked)

    drawn = cluster(draws, taking, claim, device_count=3)
    inside = drawn["cluster"]
    for each in inside["nodes"]:
        allocatable = each["status"]["allocatable"]
        allocatable |= {"cpu": draws.choice(("1", "2", "4")), "hugepages-2Mi": "1Gi"}
        allocatable["ephemeral-storage"] = draws.choice(("1Gi", "10Gi"))
    inside["pods"] = [_taker(draws, number) for number in range(2)]
    [first_device, *_] = inside["resourceSlices"][0]["spec"]["devices"]
    if draws.random() < 0.6:
        is_shared = first_device.get("allowMultipleAllocations", False)
        inside["resourceClaims"][-1]["status"] = _used(draws, is_shared=is_shared)
    for each in drawn["pending"]:
        if draws.random() < 0.3:
            second = {"name": "y", "resourceClaimName": f"c{draws.randrange(2)}"}
            each["spec"]["resourceClaims"].append(second)
            [container] = each["spec"]["containers"]
            container["resources"]["claims"].append({"name": "y"})
        _more_containers(draws, each["spec"])
    for each in inside["resourceSlices"]:
        _spread(draws, each["spec"])
    return drawn


def _spread(draws: Stream, spec: Json) -> None:
    """A slice whose devices each name their node, or may all be used on all nodes."""
    if draws.random() < 0.2:
        name = spec.pop("nodeName")
        spec["perDeviceNodeSelection"] = True
        spec["devices"] = [{**each, "nodeName": name} for each in spec["devices"]]
    elif draws.random() < 0.2:
        del spec["nodeName"]
        spec["allNodes"] = True


def _taker(draws: Stream, number: int) -> Json:
    """A placed pod whose devices take resources of its node."""
    made = pod(f"there{number}", "gone")
    made["spec"]["nodeName"] = f"n{number}"
    taken: Json = {"resourceClaimName": "gone", "containers": draws.sample(("c", "d"), 1)}
    taken["mapping"] = [{"name": "cpu", "quantity": draws.choice(("500m", "1"))}]
    per = {"perPod": "64Mi", "perContainer": draws.choice(("1Gi", "3Gi"))}
    taken["overhead"] = [{"name": "memory", **per}]
    made["status"] = {"nodeAllocatableResourceClaimStatuses": [taken]}
    return made


def _used(draws: Stream, *, is_shared: bool) -> Json:
    """The status of a claim with the first device of n0, perhaps with another user."""
    result: Json = {"request": "r", "driver": DRIVER, "pool": "n0", "device": "d0"}
    if is_shared:
        result["shareID"] = "6f4ac3b4-6f9f-4f3b-8d5a-5a4bf0a3a3d1"
        result["consumedCapacity"] = {"units": "1"}
    where = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    selector = {"nodeSelectorTerms": [where]}
    status: Json = {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}
    if draws.random() < 0.4:
        status["reservedFor"] = [{"resource": "pods", "name": "there0", "uid": "uid-there0"}]
    return status


def _more_containers(draws: Stream, spec: Json) -> None:
    """Add containers, and requests of the pod as a whole."""
    [first] = spec["containers"]
    if draws.random() < 0.2:
        del first["resources"]["claims"]
    if draws.random() < 0.5:
        spec["containers"].append({**first, "name": "d"})
    if draws.random() < 0.3:
        spec["initContainers"] = [{**first, "name": "i"}]
    if draws.random() < 0.4:
        limits = {"cpu": draws.choice(("1", "2")), "memory": "2Gi"}
        first["resources"] = {**first["resources"], "limits": {"cpu": "700m", "memory": "1Gi"}}
        huge = {"hugepages-2Mi": "64Mi"} if draws.random() < 0.5 else {}
        requests = {"cpu": draws.choice(("1", "2")), **draws.choice(({}, huge))}
        spec["resources"] = {"requests": requests, "limits": {**limits, **huge}}


def partitions(draws: Stream) -> Json:
    def part(draws: Stream, number: int) -> Json:
        value = str(draws.choice((1, 2, 3)))
        taken = {"counterSet": "set", "counters": {"slots": {"value": value}}}
        return device(f"d{number}", **({"consumesCounters": [taken]} if number else {}))

    drawn = cluster(draws, part, lambda draws: devices(request()))
    _with_counters(drawn, "3")
    return drawn


def _with_counters(drawn: Json, slots: str) -> None:
    """Add a slice with the counters of each node's pool."""
    for each in list(drawn["cluster"]["resourceSlices"]):
        each["spec"]["pool"]["resourceSliceCount"] = 2
        counters = [{"name": "set", "counters": {"slots": {"value": slots}}}]
        spec = {**each["spec"], "sharedCounters": counters}
        del spec["devices"]
        name = f"{each['metadata']['name']}-counters"
        drawn["cluster"]["resourceSlices"].append({"metadata": {"name": name}, "spec": spec})


def extended(draws: Stream) -> Json:
    """Pods that request an extended resource, which a class provides and nodes may offer."""
    drawn = cluster(draws, plain, lambda draws: devices(request()), claim_count=1)
    [device_class] = drawn["cluster"]["deviceClasses"]
    device_class["spec"]["extendedResourceName"] = "example.com/gpu"
    for each in drawn["cluster"]["nodes"]:
        if draws.random() < 0.3:
            each["status"]["allocatable"]["example.com/gpu"] = "1"
    for index in range(3):
        asking = pod(f"e{index}", "")
        del asking["spec"]["resourceClaims"]
        [container] = asking["spec"]["containers"]
        container["resources"] = {"requests": {"example.com/gpu": str(draws.randint(1, 2))}}
        drawn["pending"].append(asking)
    return drawn
