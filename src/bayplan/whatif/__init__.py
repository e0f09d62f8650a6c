"""Questions about a cluster that change nothing in it: fit, headroom, drain, add, scale.

`explain` says why a pod is pending, and `model` has the model that the questions are about.
"""
