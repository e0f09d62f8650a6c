"""The controllers whose pods the simulation creates."""

from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.objects.keys import Content, kind_of

CONTROLLERS = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB, REPLICATION_CONTROLLER)
#: Kinds with a number of replicas, without their groups.
SCALED_KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")

#: A controller with more pods is assumed to be a typing error.
PODS_MAX = 1_000_000


def is_controller(content: Content) -> bool:
    return kind_of(content) in CONTROLLERS
