"""What an upgrade of Kubernetes changes about a cluster: the configuration, and each pod.

The differences between versions are in `config.behaviour_table` and `config.gate_table`.
"""
