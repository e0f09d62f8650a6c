"""A real API server behind the port of the embedded one.

`credentials` reads and renews the credentials of the client (`kubeconfig`, `library_login`).
`client` sends one request, and decides which failures to retry (`transport`, `rate_limit`,
`errors`). `discovery` looks up the kinds that the server has. `watching` lists and watches.
`event_writer` writes events in the background. `access` checks the rights of the client. `cluster`
joins all of them as `bayplan.ports.Cluster`.
"""
