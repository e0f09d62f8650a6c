"""The objects of a cluster: their keys, the kinds that readers need, and one store for them.

Every picture of a cluster's objects is an `ObjectStore`: that of the API server in memory, of a
scheduler's listers, of the model behind questions, of a moment of the past and of a recording. What
an API server adds (versions, watches, admission) is in `adapters.embedded`; what a scheduler counts
per node is in `state`.
"""
