"""Tests against a real etcd and a real kube-apiserver. Only the kubelet is mocked.

binaries        where the two programs come from, or how they are built
control_plane   starts, restarts and stops them; users and their rights
mirror          the cluster as an administrator sees it, followed by a watch
kubelet         keeps nodes Ready, has bound pods run, and removes those that leave
world           one test's namespace, nodes and schedulers; waiting for what is to happen
proxy           a network between scheduler and API server that fails from a seed
invariants      what must be true of the server's state, whatever happened
"""
