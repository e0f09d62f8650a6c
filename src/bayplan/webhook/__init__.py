"""A validating admission webhook that warns of pods without a node. Not here: decisions, writes."""
