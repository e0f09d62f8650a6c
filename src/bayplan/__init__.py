"""A Kubernetes scheduler in Python: write a policy, try it on a laptop, run it in the cluster."""
