"""A cluster for the tests of the page: two nodes, a Deployment, a budget that blocks, a Secret."""

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {pool: big}}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "20"}}
---
apiVersion: v1
kind: Node
metadata: {name: b}
status: {allocatable: {cpu: "2", memory: 16Gi, pods: "20"}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  managedFields: [{manager: kubectl, operation: Apply}]
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: app, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: one-at-a-time, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: db}}}
status: {disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}
---
apiVersion: v1
kind: Pod
metadata:
  name: db-0
  namespace: default
  labels: {app: db}
  ownerReferences:
  - {apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u1, controller: true}
spec: {nodeName: a, containers: [{name: c, image: app, resources: {requests: {cpu: "3"}}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: default}
data: {password: c2VjcmV0}
---
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: default}
spec: {containers: [{name: c, image: app, resources: {requests: {cpu: "7"}}}]}
"""
