"""Bodies of admission reviews."""

import json


def review(cpu: str) -> bytes:
    """The creation of a pod."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    content = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
    request = {
        "uid": "u",
        "kind": {"version": "v1", "kind": "Pod"},
        "namespace": "default",
        "operation": "CREATE",
        "object": content,
    }
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**kind, "request": request}).encode()
