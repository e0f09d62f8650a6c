"""The operations of one workload: ``$parameters`` are filled in, sets of pods are unrolled.

Upstream does this while a workload runs (``patchParams``). Here it is done before anything runs, so
that a typing error in the last operation is reported at once. As upstream, an unused parameter is
an error.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast, final

from msgspec import structs

from bayplan.durations import DESCRIPTION, DurationError, parse_duration
from bayplan.perf.schema import (
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreatePodSets,
    CreateResourceClaims,
    Operation,
    Sleep,
    UpdateAny,
)
from bayplan.problems import Problem, listed, nearest, shown
from bayplan.yaml_documents import DocumentError, load_documents

T = TypeVar("T")


def filled_in(
    operations: Iterable[Operation], params: Mapping[str, Any], path: str
) -> tuple[list[Operation], list[Problem]]:
    """The operations as they are run, and their problems. ``path``: of the workload."""
    parameters = _Parameters(params, f"{path}.params")
    filled: list[Operation] = []
    for operation in operations:
        if isinstance(operation, CreatePodSets):
            filled += _sets(operation, parameters)
        else:
            filled.append(_filled(operation, parameters))
    parameters.expect_all_used()
    return filled, parameters.problems


def seconds(duration: str) -> float:
    """The seconds of a duration that `filled_in` has checked."""
    return parse_duration(duration)


def _sets(operation: CreatePodSets, parameters: "_Parameters") -> list[Operation]:
    """One createPods per set, each in a namespace of its own."""
    count = parameters.count(operation.count_param, operation.count)
    pods = operation.create_pods_op
    each = structs.asdict(cast(CreatePods, _filled(pods, parameters)))
    names = [f"{operation.namespace_prefix}-{index}" for index in range(count)]
    return [CreatePods(**{**each, "namespace": name}) for name in names]


def _filled(operation: Operation, parameters: "_Parameters") -> Operation:
    if isinstance(operation, CreatePods):
        return _filled_pods(operation, parameters)
    changes: dict[str, Any] = {}
    if isinstance(
        operation, CreateNodes | CreateNamespaces | CreatePodGroups | CreateResourceClaims
    ):
        changes["count"] = parameters.count(operation.count_param, operation.count)
    if isinstance(operation, CreateAny | UpdateAny):
        default = 1 if operation.count is None else operation.count
        changes["count"] = parameters.count(operation.count_param, default)
    if isinstance(operation, CreateNodes | CreateAny | CreatePodGroups):
        changes["template_params"] = parameters.of_template(operation.template_params)
    if isinstance(operation, Sleep):
        changes["duration"] = parameters.duration(operation.duration_param, operation.duration)
    if isinstance(operation, Churn) and operation.mode == "recreate" and not operation.number:
        parameters.problems.append(Problem("churn.number", "found 0", "wanted more to recreate"))
    return structs.replace(operation, **changes) if changes else operation


def _filled_pods(pods: CreatePods, parameters: "_Parameters") -> CreatePods:
    count = parameters.count(pods.count_param, pods.count)
    batch = parameters.count(pods.signature_batch_size_param, pods.signature_batch_size)
    filled = structs.replace(
        pods,
        count=count * parameters.count(pods.count_multiplier_param, 1),
        signature_batch_size=batch or 1,
        steady_state=parameters.value(pods.steady_state_param, pods.steady_state, bool),
        duration=parameters.duration(pods.duration_param, pods.duration),
        template_params=parameters.of_template(pods.template_params),
    )
    parameters.problems += _pod_problems(filled)
    return filled


def _pod_problems(pods: CreatePods) -> Iterable[Problem]:
    """Upstream: createPodsOp.isValid."""
    at, both = "createPods", "wanted one of the two"
    if pods.collect_metrics and pods.skip_wait_to_completion:
        yield Problem(at, "found collectMetrics with skipWaitToCompletion", both)
    if pods.steady_state and pods.skip_wait_to_completion:
        yield Problem(at, "found steadyState with skipWaitToCompletion", both)
    if pods.steady_state and not seconds(pods.duration):
        yield Problem(f"{at}.duration", "found no time", "wanted how long to keep the steady state")
    if (pods.persistent_volume_template_path is None) is not (
        pods.persistent_volume_claim_template_path is None
    ):
        text = "found one of persistentVolumeTemplatePath, persistentVolumeClaimTemplatePath"
        yield Problem(at, text, "wanted both or none")


@final
class _Parameters:
    """The parameters of one workload, with their uses and their problems."""

    def __init__(self, params: Mapping[str, Any], path: str) -> None:
        self._params = params
        self._path = path
        self._used: set[str] = set()
        self.problems: list[Problem] = []

    def value(self, reference: str | None, otherwise: T, kind: type[T]) -> T:
        """The value of ``$name``; ``otherwise`` without a reference."""
        if reference is None:
            return otherwise
        name = reference.removeprefix("$")
        if name not in self._params:
            self._unknown(name)
            return otherwise
        self._used.add(name)
        value = self._params[name]
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            expected = {bool: "true or false", int: "a whole number", str: "a string"}[kind]
            self.problems.append(
                Problem(f"{self._path}.{name}", shown(value), f"wanted {expected}")
            )
            return otherwise
        return value

    def count(self, reference: str | None, otherwise: int) -> int:
        count = self.value(reference, otherwise, int)
        if count < 0:
            name = (reference or "").removeprefix("$")
            problem = Problem(f"{self._path}.{name}", str(count), "wanted 0 or more")
            self.problems.append(problem)
            return 0
        return count

    def duration(self, reference: str | None, otherwise: str) -> str:
        text = self.value(reference, otherwise, str)
        try:
            parse_duration(text)
        except DurationError:
            at = f"{self._path}.{reference[1:]}" if reference else "duration"
            self.problems.append(Problem(at, f"found {shown(text)}", f"wanted {DESCRIPTION}"))
            return "0s"
        return text

    def of_template(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values for a template; numbers are floats there, as Go reads them from JSON."""
        return {name: _as_read_by_go(self._template_value(v)) for name, v in values.items()}

    def _template_value(self, value: Any) -> Any:
        """A value for a template: ``$name`` is a parameter. In ``$name|default``, the default is
        YAML."""
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name, has_default, default = value[1:].partition("|")
        if name in self._params:
            self._used.add(name)
            return self._params[name]
        if not has_default:
            self._unknown(name)
            return None
        try:
            documents = load_documents(default, "default")
        except DocumentError as problem:
            self.problems.append(Problem(f"templateParams: {value}", problem.message))
            return None
        return documents[0].value if documents else None

    def _unknown(self, name: str) -> None:
        meant = nearest(name, self._params)
        hint = f'did you mean "{meant}"?' if meant else f"there are {listed(self._params)}"
        self.problems.append(Problem(f"{self._path}", f'no "{name}"', hint))

    def expect_all_used(self) -> None:
        for name in self._params:
            if name not in self._used:
                problem = Problem(f"{self._path}.{name}", "no operation uses it")
                self.problems.append(problem)


def _as_read_by_go(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [_as_read_by_go(part) for part in value]
    if isinstance(value, dict):
        return {name: _as_read_by_go(part) for name, part in value.items()}
    return value
