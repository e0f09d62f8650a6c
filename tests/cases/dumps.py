"""Dumps of clusters as `kubectl get … -o yaml` writes them, drawn from a seed.

A cluster has the nodes of a provider, system pods, workloads with their controllers and the pods
that these have, claims with volumes, devices, pod groups, budgets, and objects of many kinds that a
scheduler does not read. It also has what goes wrong in real clusters: pods that wait, that were
evicted, that stay Terminating, that are on a node which the dump lacks, and objects copied with
their uid.

`python -m tests.cases.dumps --seed 3 --nodes 200 > dump.json` writes one.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import yaml

from bayplan.api.pod_groups import COSCHEDULING_LABEL
from bayplan.rng import stream
from tests.cases.dump_nodes import GPU, MACHINES, DrawnNode, draw_nodes
from tests.cases.dump_objects import (
    Content,
    Maker,
    container,
    evicted_status,
    pod_spec,
    pod_status,
    reference,
    template_spec,
    waiting_status,
)

_NAMESPACES = ("default", "kube-system", "shop", "batch", "data", "ml")
_DRIVER = "csi.example.com"
_DEVICE_DRIVER = "gpu.example.com"
_INSUFFICIENT = "0/{0} nodes are available: {0} Insufficient cpu."


@dataclass
class _Room:
    """What is free on a node."""

    node: DrawnNode
    cpu_milli: int
    memory_mib: int
    pods: int


@dataclass
class Dump:
    """The objects of one cluster, in the order of kubectl: by kind."""

    seed: int
    node_count: int
    objects: list[Content] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[Content]:
        return [each for each in self.objects if each["kind"] == kind]

    def live_pods(self) -> list[str]:
        """ "namespace/name" of the pods that have not ended."""
        return [
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in self.of_kind("Pod")
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def as_text(self) -> str:
        """One of the forms in which people have dumps; the seed decides."""
        return _FORMS[self.seed % len(_FORMS)](self.objects)


def draw_dump(seed: int, node_count: int) -> Dump:
    return _Drawing(seed, node_count).draw()


class _Drawing:
    def __init__(self, seed: int, node_count: int) -> None:
        self._maker = Maker(stream(seed, "dump"))
        self._dump = Dump(seed, node_count)
        provider = sorted(MACHINES)[seed % len(MACHINES)]
        self._nodes = draw_nodes(self._maker, provider, node_count)
        self._rooms = [
            _Room(node, node.machine.cpu_milli, node.machine.memory_mib, node.machine.pods)
            for node in self._nodes
        ]
        self._open = [room for room in self._rooms if room.node.is_open]
        #: Controllers and objects that a scheduler reads, and the pods.
        self._objects: list[Content] = []
        self._pods: list[Content] = []

    def draw(self) -> Dump:
        self._cluster_objects()
        self._mirror_pods()
        self._daemon_sets()
        for number in range(max(2, len(self._nodes) // 6)):
            self._deployment(f"web-{number}")
        for number in range(max(1, len(self._nodes) // 30)):
            self._stateful_set(f"db-{number}")
        for number in range(max(1, len(self._nodes) // 20)):
            self._job(f"report-{number}")
        self._bare_pods()
        self._devices()
        for number in range(max(2, len(self._nodes) // 40)):
            self._pod_group(f"gang-{number}", is_too_large=number % 2 == 1)
        self._spoil()
        nodes = [node.content for node in self._nodes]
        self._dump.objects = [*nodes, *self._objects, *self._pods, *self._foreign()]
        return self._dump

    # ---- pods ---------------------------------------------------------------------------------

    def _pod(
        self,
        name: str,
        namespace: str,
        template: Content,
        node: str,
        phase: str = "Running",
        **parts: object,
    ) -> Content:
        spec = pod_spec(self._maker, template, node)
        if node:
            status = pod_status(self._maker, spec, phase)
        else:
            status = waiting_status(_INSUFFICIENT.format(len(self._nodes)))
        pod = self._maker.make("v1 Pod", name, namespace, spec=spec, status=status, **parts)
        self._pods.append(pod)
        return pod

    def _place(self, template: Content) -> str:
        """A node with room for a pod of the template; "": it waits."""
        requests = [each["resources"].get("requests", {}) for each in template["containers"]]
        overhead = template.get("overhead", {})
        amounts = [*requests, overhead]
        cpu = sum(int(each.get("cpu", "0m").removesuffix("m")) for each in amounts)
        memory = sum(int(each.get("memory", "0Mi").removesuffix("Mi")) for each in amounts)
        for _ in range(8):
            if not self._open:
                return ""
            room = self._maker.stream.choice(self._open)
            if room.cpu_milli >= cpu and room.memory_mib >= memory and room.pods:
                room.cpu_milli -= cpu
                room.memory_mib -= memory
                room.pods -= 1
                return room.node.name
        return ""

    def _mirror_pods(self) -> None:
        """The static pods of control planes."""
        for node in self._nodes:
            if "node-role.kubernetes.io/control-plane" not in node.labels:
                continue
            for name in ("etcd", "kube-apiserver", "kube-scheduler"):
                template = template_spec(
                    [container(name, 250, 512, ports=[])],
                    hostNetwork=True,
                    priority=2000001000,
                    priorityClassName="system-node-critical",
                )
                self._pod(
                    f"{name}-{node.name}",
                    "kube-system",
                    template,
                    node.name,
                    annotations={
                        "kubernetes.io/config.mirror": "ab12",
                        "kubernetes.io/config.source": "file",
                    },
                    owner=node.content,
                )

    def _daemon_sets(self) -> None:
        for name, cpu, memory in (("kube-proxy", 100, 64), ("node-agent", 50, 128)):
            labels = {"k8s-app": name}
            template = template_spec(
                [container(name, cpu, memory, ports=[])],
                hostNetwork=True,
                priority=2000001000,
                priorityClassName="system-node-critical",
                tolerations=[{"operator": "Exists"}],
            )
            owner = self._controller("apps/v1 DaemonSet", name, "kube-system", labels, template)
            for room in self._rooms:
                room.cpu_milli -= cpu
                room.memory_mib -= memory
                room.pods -= 1
                own = {**template, "affinity": _only_on(room.node.name)}
                self._pod(
                    f"{name}-{self._maker.suffix()}",
                    "kube-system",
                    own,
                    room.node.name,
                    labels={
                        **labels,
                        "controller-revision-hash": "5d8f",
                        "pod-template-generation": "1",
                    },
                    generate_name=f"{name}-",
                    owner=owner,
                )

    def _controller(
        self,
        kind: str,
        name: str,
        namespace: str,
        labels: dict[str, str],
        template: Content,
        **parts: object,
    ) -> Content:
        """``labels``: the selector, and the labels of the pods; spec fields are keywords."""
        owner, annotations = parts.pop("owner", None), parts.pop("annotations", {})
        content = self._maker.make(
            kind,
            name,
            namespace,
            labels=labels,
            annotations=annotations,
            owner=owner,
            spec={
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"creationTimestamp": None, "labels": labels},
                    "spec": template,
                },
                **parts,
            },
            status={"observedGeneration": 3},
        )
        self._objects.append(content)
        return content

    def _deployment(self, name: str) -> None:
        maker, draw = self._maker, self._maker.stream.randrange
        namespace = maker.stream.choice(("default", "shop"))
        labels = {"app": name, "app.kubernetes.io/managed-by": "Helm"}
        replicas = draw(1, 12)
        template = template_spec([container(name, draw(1, 12) * 100, draw(1, 16) * 64)])
        if maker.chance(0.3):
            template["topologySpreadConstraints"] = [
                {
                    "labelSelector": {"matchLabels": labels},
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                }
            ]
        if maker.chance(0.2):
            template |= {"priority": 100000, "priorityClassName": "business"}
        if maker.chance(0.1):
            template |= {
                "overhead": {"cpu": "100m", "memory": "64Mi"},
                "runtimeClassName": "gvisor",
            }
        if maker.chance(0.15):
            template["nodeSelector"] = {"kubernetes.io/arch": "arm64"}
        deployment = self._controller(
            "apps/v1 Deployment",
            name,
            namespace,
            labels,
            template,
            annotations={
                "deployment.kubernetes.io/revision": "2",
                "meta.helm.sh/release-name": name,
            },
            replicas=replicas,
            progressDeadlineSeconds=600,
            revisionHistoryLimit=10,
            strategy={
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                "type": "RollingUpdate",
            },
        )
        for revision, count in (("1", 0), ("2", replicas)):
            pod_hash = maker.suffix(10)
            own = {**labels, "pod-template-hash": pod_hash}
            replica_set = self._controller(
                "apps/v1 ReplicaSet",
                f"{name}-{pod_hash}",
                namespace,
                own,
                template if count else _with_image(template, "old:v1.2.2"),
                annotations={"deployment.kubernetes.io/revision": revision},
                owner=deployment,
                replicas=count,
            )
            for _ in range(count):
                self._pod(
                    f"{name}-{pod_hash}-{maker.suffix()}",
                    namespace,
                    template,
                    "" if "nodeSelector" in template else self._place(template),
                    labels=own,
                    generate_name=f"{name}-{pod_hash}-",
                    owner=replica_set,
                )
        self._around(name, namespace, labels, replicas)

    def _around(self, name: str, namespace: str, labels: dict[str, str], replicas: int) -> None:
        """What a Deployment often has: a budget, an autoscaler, a Service, a ConfigMap."""
        maker = self._maker
        if maker.chance(0.5):
            spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
            status = {
                "currentHealthy": replicas,
                "desiredHealthy": replicas - 1,
                "disruptionsAllowed": 1,
            }
            self._objects.append(
                maker.make(
                    "policy/v1 PodDisruptionBudget", name, namespace, spec=spec, status=status
                )
            )
        if maker.chance(0.4):
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            spec = {"maxReplicas": 20, "minReplicas": 1, "scaleTargetRef": target}
            kind = "autoscaling/v2 HorizontalPodAutoscaler"
            self._objects.append(maker.make(kind, name, namespace, spec=spec, status={}))
        spec = {
            "clusterIP": "10.96.0.7",
            "ports": [{"port": 80, "targetPort": "http"}],
            "selector": labels,
        }
        self._objects.append(
            maker.make("v1 Service", name, namespace, spec=spec, status={"loadBalancer": {}})
        )
        data = {"alert.yaml": "summary: '{{ $labels.pod }} is down'\n---\n", "on": "yes"}
        self._objects.append(maker.make("v1 ConfigMap", name, namespace, data=data))

    def _stateful_set(self, name: str) -> None:
        labels = {"app": name}
        mount = {"mountPath": "/var/lib/data", "name": "data"}
        template = template_spec([container(name, 500, 1024, volumeMounts=[mount])])
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"creationTimestamp": None, "name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}},
                "storageClassName": "fast",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Pending"},
        }
        owner = self._controller(
            "apps/v1 StatefulSet",
            name,
            "data",
            labels,
            template,
            replicas=3,
            serviceName=name,
            podManagementPolicy="OrderedReady",
            volumeClaimTemplates=[claim],
        )
        for ordinal in range(3):
            node = self._place(template)
            if not node:
                break
            self._bound_claim(f"data-{name}-{ordinal}", claim["spec"], node)
            volume = {
                "name": "data",
                "persistentVolumeClaim": {"claimName": f"data-{name}-{ordinal}"},
            }
            self._pod(
                f"{name}-{ordinal}",
                "data",
                {**template, "volumes": [volume]},
                node,
                labels={**labels, "statefulset.kubernetes.io/pod-name": f"{name}-{ordinal}"},
                generate_name=f"{name}-",
                owner=owner,
            )

    def _bound_claim(self, name: str, spec: Content, node: str) -> None:
        maker = self._maker
        volume_name = f"pvc-{maker.uid()}"
        claim = maker.make(
            "v1 PersistentVolumeClaim",
            name,
            "data",
            annotations={
                "pv.kubernetes.io/bind-completed": "yes",
                "volume.kubernetes.io/selected-node": node,
            },
            finalizers=["kubernetes.io/pvc-protection"],
            spec={**spec, "volumeName": volume_name},
            status={
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "10Gi"},
                "phase": "Bound",
            },
        )
        claim_reference = {**reference(claim), "namespace": "data"}
        for extra in ("blockOwnerDeletion", "controller"):
            del claim_reference[extra]
        volume = maker.make(
            "v1 PersistentVolume",
            volume_name,
            finalizers=["kubernetes.io/pv-protection"],
            spec={
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "10Gi"},
                "claimRef": claim_reference,
                "csi": {
                    "driver": _DRIVER,
                    "fsType": "ext4",
                    "volumeHandle": f"vol-{maker.suffix(12)}",
                },
                "nodeAffinity": {"required": _hostname_in(node)},
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": "fast",
                "volumeMode": "Filesystem",
            },
            status={"phase": "Bound"},
        )
        attachment = maker.make(
            "storage.k8s.io/v1 VolumeAttachment",
            f"csi-{maker.suffix(20)}",
            spec={
                "attacher": _DRIVER,
                "nodeName": node,
                "source": {"persistentVolumeName": volume_name},
            },
            status={"attached": True},
        )
        self._objects += [claim, volume, attachment]

    def _job(self, name: str) -> None:
        """A CronJob with a Job that is done and one that runs."""
        maker = self._maker
        template = template_spec([container(name, 200, 256)], restartPolicy="Never")
        job_spec = {"completions": 2, "parallelism": 2, "template": {"spec": template}}
        cron_job = maker.make(
            "batch/v1 CronJob",
            name,
            "batch",
            spec={"jobTemplate": {"spec": job_spec}, "schedule": "*/10 * * * *"},
            status={},
        )
        self._objects.append(cron_job)
        for minute, is_done in ((29_000_000, True), (29_000_010, False)):
            job_name = f"{name}-{minute}"
            labels = {"batch.kubernetes.io/job-name": job_name, "job-name": job_name}
            done = [{"status": "True", "type": "Complete"}] if is_done else []
            job = maker.make(
                "batch/v1 Job",
                job_name,
                "batch",
                labels=labels,
                owner=cron_job,
                spec={
                    **job_spec,
                    "backoffLimit": 6,
                    "completionMode": "NonIndexed",
                    "suspend": False,
                    "template": {"metadata": {"labels": labels}, "spec": template},
                },
                status={"conditions": done, "succeeded": 2}
                if is_done
                else {"active": 2, "ready": 2},
            )
            self._objects.append(job)
            for _ in range(2):
                self._pod(
                    f"{job_name}-{maker.suffix()}",
                    "batch",
                    template,
                    self._nodes[0].name if is_done else self._place(template),
                    "Succeeded" if is_done else "Running",
                    labels=labels,
                    finalizers=[] if is_done else ["batch.kubernetes.io/job-tracking"],
                    generate_name=f"{job_name}-",
                    owner=job,
                )

    def _bare_pods(self) -> None:
        """Pods without a controller: one that no node has room for, and evicted ones."""
        huge = template_spec([container("huge", 900_000, 64)])
        self._pod("huge", "default", huge, "", labels={"run": "huge"})
        for number in range(3):
            small = template_spec([container("debug", 0, 0)])
            pod = self._pod(f"debug-{number}", "default", small, self._nodes[0].name)
            pod["status"] = evicted_status()

    def _devices(self) -> None:
        """GPUs of a driver: classes, slices, a claim that is allocated and one that waits."""
        maker = self._maker
        with_gpus = [node for node in self._nodes if node.machine.gpus]
        selector = {"cel": {"expression": f'device.driver == "{_DEVICE_DRIVER}"'}}
        self._objects.append(
            maker.make(
                "resource.k8s.io/v1 DeviceClass", _DEVICE_DRIVER, spec={"selectors": [selector]}
            )
        )
        for node in with_gpus:
            devices = [
                {
                    "attributes": {"model": {"string": node.machine.name}, "index": {"int": index}},
                    "capacity": {"memory": {"value": "24Gi"}},
                    "name": f"gpu-{index}",
                }
                for index in range(node.machine.gpus)
            ]
            self._objects.append(
                maker.make(
                    "resource.k8s.io/v1 ResourceSlice",
                    f"{node.name}-{_DEVICE_DRIVER}-{maker.suffix()}",
                    owner=node.content,
                    spec={
                        "devices": devices,
                        "driver": _DEVICE_DRIVER,
                        "nodeName": node.name,
                        "pool": {"generation": 1, "name": node.name, "resourceSliceCount": 1},
                    },
                )
            )
        exactly = {"allocationMode": "ExactCount", "count": 1, "deviceClassName": _DEVICE_DRIVER}
        requests = {"devices": {"requests": [{"exactly": exactly, "name": "gpu"}]}}
        self._objects.append(
            maker.make(
                "resource.k8s.io/v1 ResourceClaimTemplate", "one-gpu", "ml", spec={"spec": requests}
            )
        )
        tolerations = [{"key": GPU, "operator": "Exists"}]
        for number, node in enumerate([*with_gpus[:1], None]):
            self._device_pod(f"train-{number}", requests, node, tolerations)
        limits = template_spec(
            [container("cuda", 500, 1024, limits={GPU: "1"})], tolerations=tolerations
        )
        self._pod("cuda", "ml", limits, "", labels={"run": "cuda"})

    def _device_pod(
        self, name: str, requests: Content, node: DrawnNode | None, tolerations: list[Content]
    ) -> None:
        main = container("main", 500, 1024)
        main["resources"]["claims"] = [{"name": "gpu"}]
        template = template_spec(
            [main],
            resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            tolerations=tolerations,
        )
        pod = self._pod(name, "ml", template, "" if node is None else node.name)
        claim_name = f"{name}-gpu-{self._maker.suffix()}"
        pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": claim_name}]
        status: Content = {}
        if node is not None:
            result = {
                "device": "gpu-0",
                "driver": _DEVICE_DRIVER,
                "pool": node.name,
                "request": "gpu",
            }
            meta = pod["metadata"]
            status = {
                "allocation": {
                    "devices": {"results": [result]},
                    "nodeSelector": _name_in(node.name),
                },
                "reservedFor": [{"name": meta["name"], "resource": "pods", "uid": meta["uid"]}],
            }
        self._objects.append(
            self._maker.make(
                "resource.k8s.io/v1 ResourceClaim",
                claim_name,
                "ml",
                annotations={"resource.kubernetes.io/pod-claim-name": "gpu"},
                finalizers=["resource.kubernetes.io/delete-protection"] if status else [],
                generate_name=f"{name}-gpu-",
                owner=pod,
                spec=requests,
                status=status,
            )
        )

    def _pod_group(self, name: str, *, is_too_large: bool) -> None:
        """A training job whose pods start together. ``is_too_large``: no node has room for one."""
        maker, draw = self._maker, self._maker.stream.randrange
        minimum = draw(2, 9)
        template = template_spec([container("worker", 900_000 if is_too_large else 250, 512)])
        job = maker.make(
            "kubeflow.org/v1 PyTorchJob",
            name,
            "ml",
            spec={
                "pytorchReplicaSpecs": {
                    "Worker": {"replicas": minimum, "template": {"spec": template}}
                }
            },
        )
        group = maker.make(
            "scheduling.x-k8s.io/v1alpha1 PodGroup",
            name,
            "ml",
            owner=job,
            spec={"minMember": minimum, "scheduleTimeoutSeconds": 60},
            status={"phase": "Scheduling" if is_too_large else "Running"},
        )
        self._objects += [job, group]
        nodes = [self._place(template) for _ in range(minimum)]
        for index, node in enumerate(nodes):
            self._pod(
                f"{name}-worker-{index}",
                "ml",
                template,
                node if all(nodes) else "",
                labels={COSCHEDULING_LABEL: name, "training.kubeflow.org/job-name": name},
                owner=job,
            )

    # ---- the cluster --------------------------------------------------------------------------

    def _cluster_objects(self) -> None:
        maker = self._maker
        for name in _NAMESPACES:
            labels = {"kubernetes.io/metadata.name": name}
            status = {"phase": "Active"}
            self._objects.append(maker.make("v1 Namespace", name, labels=labels, status=status))
        for name, value in (
            ("system-node-critical", 2000001000),
            ("system-cluster-critical", 2000000000),
            ("business", 100000),
        ):
            self._objects.append(
                maker.make(
                    "scheduling.k8s.io/v1 PriorityClass",
                    name,
                    preemptionPolicy="PreemptLowerPriority",
                    value=value,
                )
            )
        self._objects += [
            maker.make(
                "node.k8s.io/v1 RuntimeClass",
                "gvisor",
                handler="runsc",
                overhead={"podFixed": {"cpu": "100m", "memory": "64Mi"}},
            ),
            maker.make(
                "storage.k8s.io/v1 StorageClass",
                "fast",
                annotations={"storageclass.kubernetes.io/is-default-class": "true"},
                allowVolumeExpansion=True,
                provisioner=_DRIVER,
                reclaimPolicy="Delete",
                volumeBindingMode="WaitForFirstConsumer",
            ),
            maker.make(
                "storage.k8s.io/v1 CSIDriver",
                _DRIVER,
                spec={"attachRequired": True, "podInfoOnMount": False, "storageCapacity": False},
            ),
            maker.make(
                "v1 LimitRange",
                "limits",
                "batch",
                spec={"limits": [{"defaultRequest": {"cpu": "100m"}, "type": "Container"}]},
            ),
            maker.make(
                "v1 ResourceQuota",
                "quota",
                "shop",
                spec={"hard": {"pods": "100000", "requests.cpu": "100k"}},
                status={"hard": {"pods": "100000"}, "used": {"pods": "7"}},
            ),
        ]
        for node in self._nodes:
            driver = {
                "allocatable": {"count": 26},
                "name": _DRIVER,
                "nodeID": node.name,
                "topologyKeys": ["topology.kubernetes.io/zone"],
            }
            self._objects.append(
                maker.make("storage.k8s.io/v1 CSINode", node.name, spec={"drivers": [driver]})
            )

    def _foreign(self) -> Iterator[Content]:
        """Kinds that a scheduler does not read."""
        maker = self._maker
        kinds = (
            ("cert-manager.io/v1 Certificate", "shop"),
            ("monitoring.coreos.com/v1 ServiceMonitor", "shop"),
            ("argoproj.io/v1alpha1 Rollout", "shop"),
            ("networking.k8s.io/v1 Ingress", "shop"),
            ("rbac.authorization.k8s.io/v1 ClusterRole", ""),
            ("apiextensions.k8s.io/v1 CustomResourceDefinition", ""),
            ("coordination.k8s.io/v1 Lease", "kube-system"),
            ("karpenter.sh/v1 NodePool", ""),
            ("v1 ServiceAccount", "default"),
            ("v1 Secret", "default"),
        )
        for kind, namespace in kinds:
            for number in range(3):
                yield maker.make(kind, f"foreign-{number}", namespace, spec={"on": True})
        for number in range(5):
            involved = {"apiVersion": "v1", "kind": "Pod", "name": "huge", "namespace": "default"}
            yield maker.make(
                "v1 Event",
                f"huge.{maker.suffix(16)}",
                "default",
                count=number,
                involvedObject=involved,
                message="0/9 nodes are available",
                reason="FailedScheduling",
            )

    # ---- what goes wrong ----------------------------------------------------------------------

    def _spoil(self) -> None:
        """A share of the pods stays Terminating, is on a missing node, or has a repeated uid."""
        maker = self._maker
        running = [pod for pod in self._pods if pod["status"].get("phase") == "Running"]
        terminating, lost, copied, bare = maker.stream.sample(running, 4)
        terminating["metadata"] |= {
            "deletionGracePeriodSeconds": 30,
            "deletionTimestamp": "2026-03-09T23:00:00Z",
            "finalizers": ["example.com/never-removed"],
        }
        lost["spec"]["nodeName"] = "node-that-is-gone"
        copied["metadata"]["uid"] = running[0]["metadata"]["uid"]
        del bare["metadata"]["uid"]


def _with_image(template: Content, image: str) -> Content:
    containers = [{**each, "image": image} for each in template["containers"]]
    return {**template, "containers": containers}


def _only_on(node: str) -> Content:
    """The affinity of a DaemonSet's pod."""
    field_name = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field_name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _name_in(node: str) -> Content:
    return {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        ]
    }


def _hostname_in(node: str) -> Content:
    label = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchExpressions": [label]}]}


# ---- forms ---------------------------------------------------------------------------------


def _list(objects: list[Content], kind: str = "List") -> Content:
    return {"apiVersion": "v1", "items": objects, "kind": kind, "metadata": {"resourceVersion": ""}}


def _one_json_list(objects: list[Content]) -> str:
    return json.dumps(_list(objects), indent=4)


def _json_lists_back_to_back(objects: list[Content]) -> str:
    """Several runs of kubectl into one file."""
    kinds = dict.fromkeys((each["apiVersion"], each["kind"]) for each in objects)
    lists = [
        _list([each for each in objects if (each["apiVersion"], each["kind"]) == kind])
        for kind in kinds
    ]
    return "\n".join(map(json.dumps, lists))


def _yaml_documents(objects: list[Content]) -> str:
    """A document for each object, with Windows' line ends."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump_all(objects, Dumper=dumper, sort_keys=False).replace("\n", "\r\n")


def _json_then_yaml(objects: list[Content]) -> str:
    half = len(objects) // 2
    texts = chain([json.dumps(_list(objects[:half]))], [_yaml_documents(objects[half:])])
    return "\n---\n".join(texts)


_FORMS: tuple[Callable[[list[Content]], str], ...] = (
    _one_json_list,
    _json_lists_back_to_back,
    _yaml_documents,
    _json_then_yaml,
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the dump of a cluster that a seed draws.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=60)
    options = parser.parse_args()
    sys.stdout.write(draw_dump(options.seed, options.nodes).as_text())


if __name__ == "__main__":
    main()
