"""Questions about a cluster that change nothing in it: fit, headroom, drain, add, scale.

Not here: why a pod is pending (`explain`), and the model that the questions are put to (`model`).
"""
