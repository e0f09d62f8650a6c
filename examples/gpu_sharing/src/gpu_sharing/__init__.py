"""Pods that share GPUs: plugins for Bayplan, and the study that compares them."""
