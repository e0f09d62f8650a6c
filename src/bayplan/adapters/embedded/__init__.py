"""The API server in memory: object store, verbs, defaults, validation and its controllers."""
