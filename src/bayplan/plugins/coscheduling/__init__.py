"""Coscheduling: the members of a pod group run together, or none of them does.

`plugin` says when what is asked; the rest is beneath it:

- `args`: how members are placed, how long they wait, what is done with a group that failed;
- `recent`: groups that were denied, or let through, a moment ago;
- `shortage`: what a group's minResources lack in the whole cluster;
- `hints`: what makes a rejected member worth another attempt.

With ``placement: group`` the engine places a group in one pass, and the plugin sorts the queue.
With ``placement: pod`` members are placed one by one: each reserves its node and waits at Permit
until enough of them hold one. That way two groups may hold what the other lacks until their waits
time out; it is here for those who compare, and for charts that ask for it. Upstream:
kubernetes-sigs/scheduler-plugins, pkg/coscheduling.
"""

from bayplan.plugins.coscheduling.args import CoschedulingArgs
from bayplan.plugins.coscheduling.plugin import Coscheduling

__all__ = ["Coscheduling", "CoschedulingArgs"]
