"""Kubernetes objects as a scheduler reads them: frozen, decoded once, integers from here inward."""
