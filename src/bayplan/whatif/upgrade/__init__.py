"""What an upgrade of Kubernetes changes about a cluster: the configuration, and each pod.

Not here: what the versions do differently (`config.behaviour_table`, `config.gate_table`).
"""
