"""A node and a pod whose names, images and annotations are confidential."""

from typing import Any

Content = dict[str, Any]

NODE: Content = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "acme-gpu-7.internal",
        "labels": {"kubernetes.io/hostname": "acme-gpu-7.internal", "zone": "z1"},
        "annotations": {"secret": "x"},
    },
    "status": {
        "allocatable": {"cpu": "4"},
        "images": [{"names": ["registry.acme/app:latest"], "sizeBytes": 10}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
    },
}

POD: Content = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "billing-0",
        "generateName": "billing-",
        "namespace": "acme-prod",
        "uid": "u1",
        "labels": {"app": "web", "statefulset.kubernetes.io/pod-name": "billing-0", "rank": "7"},
        "annotations": {"token": "hunter2"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "billing"}],
    },
    "spec": {
        "nodeName": "acme-gpu-7.internal",
        "serviceAccountName": "billing-robot",
        "containers": [
            {
                "name": "charge-cards",
                "image": "registry.acme/app",
                "command": ["--password=hunter2"],
                "env": [{"name": "TOKEN", "value": "hunter2"}],
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {
                                    "key": "metadata.name",
                                    "operator": "In",
                                    "values": ["acme-gpu-7.internal"],
                                }
                            ]
                        }
                    ]
                }
            }
        },
    },
    "status": {"conditions": [{"type": "Ready", "status": "True", "message": "hunter2 is late"}]},
}
