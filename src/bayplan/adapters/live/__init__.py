"""A real API server behind the port of the embedded one.

credentials     who we are: kubeconfig, exec plugins, in-cluster tokens, all renewed
rate_limit      how fast a class of requests may go
errors          how the server says no, as exceptions of `bayplan.ports`
client          one request: sent, retried, refused, or without an answer
"""
