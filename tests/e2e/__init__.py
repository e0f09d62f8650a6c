"""Kubernetes' end-to-end specs, with `bayplan run` as the only scheduler of the cluster.

binaries   the programs: control plane, KWOK in place of kubelets, and Kubernetes' e2e.test
cluster    starts them, creates nodes, and starts the scheduler
stages     what KWOK reports for nodes and pods, as a kubelet would
suites     which specs run together, and the feature gates they need
specs/     the names of the specs, one a line
"""
