"""Which devices a request selects: by the selectors of its class, its own selectors, and the
devices that the node may use.

The result of an expression for a device depends only on the expression and the device. So results
are cached until the slice that lists the device changes, and serve all pods and nodes.
"""

from collections.abc import Sequence
from typing import final

from bayplan.api.device_objects import DeviceAttribute, DeviceClass, DeviceSelector, ResourceSlice
from bayplan.api.device_selectors import (
    MISSING_KEY_ADVICE,
    CelError,
    compile_derived_attribute,
    compile_selector,
)
from bayplan.api.objects import Node
from bayplan.plugins.dynamic_resources.features import ALL_ON, DeviceFeatures
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate, matches_node
from bayplan.plugins.dynamic_resources.requests import Request

#: (expression, device) → whether it holds.
_Results = dict[tuple[str, str], bool]
#: (expression, device) → the attribute that the expression derives.
_Derived = dict[tuple[str, str], DeviceAttribute]


class CelRuntimeError(Exception):
    """An expression fails for a device."""


@final
class SelectorResults:
    """Results of expressions by slice. The results of a slice that changed are forgotten."""

    def __init__(self) -> None:
        self._by_slice: dict[str, tuple[ResourceSlice, _Results, _Derived]] = {}

    def holds(self, expression: str, candidate: Candidate) -> bool:
        """Raises CelError, CelRuntimeError."""
        results = self._of(candidate.slice)[1]
        key = (expression, candidate.id.device)
        result = results.get(key)
        if result is None:
            program = compile_selector(expression)
            if isinstance(program, CelError):
                raise CelError(f"CEL compile error: {program}")
            try:
                result = program.matches(candidate.id.driver, candidate.device)
            except CelError as problem:
                raise CelRuntimeError(str(problem)) from None
            results[key] = result
        return result

    def derived(self, expression: str, candidate: Candidate) -> DeviceAttribute:
        """The attribute that an expression derives from a device. Raises CelError."""
        results = self._of(candidate.slice)[2]
        key = (expression, candidate.id.device)
        if key not in results:
            program = compile_derived_attribute(expression)
            if isinstance(program, CelError):
                raise program
            results[key] = program.attribute(candidate.id.driver, candidate.device)
        return results[key]

    def keep_only(self, slices: Sequence[ResourceSlice]) -> None:
        """Forget slices that are gone."""
        names = {each.metadata.name for each in slices}
        for name in [name for name in self._by_slice if name not in names]:
            del self._by_slice[name]

    def _of(self, resource_slice: ResourceSlice) -> tuple[ResourceSlice, _Results, _Derived]:
        name = resource_slice.metadata.name
        entry = self._by_slice.get(name)
        if entry is None or entry[0] is not resource_slice:
            entry = self._by_slice[name] = (resource_slice, {}, {})
        return entry


@final
class Selection:
    """Which devices the requests of one claim may get on one node."""

    def __init__(
        self, results: SelectorResults, node: Node, features: DeviceFeatures = ALL_ON
    ) -> None:
        self._results = results
        self._node = node
        self._features = features

    def means(
        self, candidate: Candidate, request: Request, device_class: DeviceClass, claim: str
    ) -> bool:
        """Whether the request may get this device. Raises AllocationError."""
        if candidate.device.binding_conditions and not self._features.binding_conditions:
            return False
        subject = f"class {device_class.metadata.name}"
        return (
            self._all_hold(device_class.spec.selectors or (), candidate, subject)
            and self._all_hold(request.selectors, candidate, f"claim {claim}")
            and self._is_for_node(candidate)
        )

    def _all_hold(
        self, selectors: Sequence[DeviceSelector], candidate: Candidate, subject: str
    ) -> bool:
        for index, selector in enumerate(selectors):
            if selector.cel is None:
                continue
            try:
                if not self._results.holds(selector.cel.expression, candidate):
                    return False
            except CelRuntimeError as problem:
                where, text = "", f"CEL runtime error: {problem}"
                if self._features.behaviour.selector_errors_name_devices:
                    where = f" on device {candidate.id}"
                else:
                    text = text.removesuffix(MISSING_KEY_ADVICE)
                text = f"{subject}: selector #{index}{where}: {text}"
                raise AllocationError(text) from None
            except CelError as problem:
                raise AllocationError(f"{subject}: selector #{index}: {problem}") from None
        return True

    def _is_for_node(self, candidate: Candidate) -> bool:
        if not candidate.slice.spec.per_device_node_selection:
            return True
        device = candidate.device
        return matches_node(self._node, device.node_name, device.all_nodes, device.node_selector)
