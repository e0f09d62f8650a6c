"""A plugin that reads device kinds and registers no events."""

from typing import Any

from bayplan.framework.plugin import ScalarFilterPlugin
from bayplan.framework.status import Status

SLICE = "resource.k8s.io/v1 ResourceSlice"

CLASS = "resource.k8s.io/v1 DeviceClass"


class Devices(ScalarFilterPlugin):
    name = "Devices"
    kinds = ("v1 Service", SLICE, CLASS)

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status | None:
        return None
