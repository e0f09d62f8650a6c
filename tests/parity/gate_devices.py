"""Drawn clusters with devices, for the feature gates of devices."""

from collections.abc import Callable, Mapping
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
    slice_fields: Mapping[str, Any] | None = None,
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
            **(slice_fields or {}),
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


def partitions(draws: Stream) -> Json:
    def part(draws: Stream, number: int) -> Json:
        value = str(draws.choice((1, 2, 3)))
        taken = {"counterSet": "set", "counters": {"slots": {"value": value}}}
        return device(f"d{number}", **({"consumesCounters": [taken]} if number else {}))

    drawn = cluster(draws, part, lambda draws: devices(request()))
    for each in list(drawn["cluster"]["resourceSlices"]):
        each["spec"]["pool"]["resourceSliceCount"] = 2
        counters = [{"name": "set", "counters": {"slots": {"value": "3"}}}]
        spec = {**each["spec"], "sharedCounters": counters}
        del spec["devices"]
        name = f"{each['metadata']['name']}-counters"
        drawn["cluster"]["resourceSlices"].append({"metadata": {"name": name}, "spec": spec})
    return drawn


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
