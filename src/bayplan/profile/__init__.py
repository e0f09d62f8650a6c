"""Configuration and registry become frameworks: plugin sets, instances, score sources, handles.

Nothing here decides about a pod: the engine does, with the frameworks that this package builds.
"""
