"""A real API server behind the port of the embedded one.

`credentials` say who we are and are renewed (`kubeconfig`, `library_login`), `client` sends one
request and knows what may be tried again (`transport`, `rate_limit`, `errors`), `discovery` knows
which kinds there are, `watching` lists and watches, `event_writer` writes events beside it all,
`access` asks what we may do, and `cluster` is all of it as `bayplan.ports.Cluster`.
"""
