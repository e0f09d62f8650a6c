"""The causes of a pod in plain objects or in one of the reported inputs."""

from pathlib import Path

from bayplan.adapters.embedded.api_features import NO_FEATURES
from bayplan.explain.causes import causes_of
from bayplan.explain.diagnosis import diagnose
from bayplan.explain.explanation import Cause
from bayplan.model.reading import objects_of_workload
from bayplan.sim.input.inputs import load_inputs
from tests.kit.manifests import Content
from tests.whatif.clusters import model_of

_CASES = Path(__file__).parent.parent / "cases"


def causes_in(*sources: Content | Path, pod: str = "default/p") -> tuple[Cause, ...]:
    model = model_of(objects_of_workload(load_inputs(sources), "test", features=NO_FEATURES))
    try:
        return causes_of(model, diagnose(model, pod))
    finally:
        model.close()


def details_in(*sources: Content | Path, pod: str = "default/p") -> list[str]:
    """The details of the only cause, without their indentation."""
    [cause] = causes_in(*sources, pod=pod)
    return [detail.strip() for detail in cause.details]


def case(name: str) -> Path:
    """A reported input."""
    return _CASES / name
