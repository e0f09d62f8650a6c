"""What Bayplan refuses of an input beside a real kube-apiserver: verdicts and texts.

Each object is read as `bayplan simulate` reads it, and sent to a real server as a dry run. Both
must accept it or both must refuse it. If one change was made and Bayplan has kube-apiserver's
words, the causes must be equal.

$BAYPLAN_DRAW_SEED draws other objects.
"""

import os
import re
from collections.abc import Iterator

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.object_meta import resource_of
from bayplan.clock import ManualClock
from bayplan.objects.keys import is_namespaced, kind_of
from bayplan.ports import ApiError
from bayplan.sim.input.errors import InputError
from bayplan.sim.input.inputs import load_inputs
from tests.kit.manifests import Content
from tests.live.conftest import started
from tests.live.control_plane import ControlPlane
from tests.live.drawn_objects import Drawn, drawn, single_changes

pytestmark = pytest.mark.timeout(900)

COUNT = 400
SEED = int(os.environ.get("BAYPLAN_DRAW_SEED", "1"))
CREATED = 201
#: kube-apiserver adds the volumes of claim templates before those of the manifest.
_NUMBER = re.compile(r"(?<=spec\.volumes\[)\d+")
#: A struct as Go has it inside, which Bayplan prints otherwise.
_INSIDE = re.compile(r"{.*}(?=\]?: (?:minAvailable|Only one|cannot set|`selector` not))")


@pytest.fixture(scope="module")
def default_plane() -> Iterator[ControlPlane]:
    """A server with its default admission; without ServiceAccounts, for no controller makes any."""
    yield from started(disabled_admission="ServiceAccount")


def real_refusal(plane: ControlPlane, content: Content) -> str:
    """The message of the server; "": it accepts the object."""
    version, kind = content["apiVersion"], kind_of(content)
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    where = "/namespaces/default" if is_namespaced(kind) else ""
    path = f"{root}{where}/{resource_of(kind)}?dryRun=All"
    code, answer = plane.request("POST", path, content)
    return "" if code == CREATED else answer["message"]


def own_refusal(content: Content) -> str:
    """The lines of an input error; "": the object is read and created."""
    try:
        initial = load_inputs([content]).initial
        own = next(one for one in initial if kind_of(one) == kind_of(content))
        EmbeddedCluster(ManualClock()).create(own)
    except (InputError, ApiError) as problem:
        return str(problem)
    return ""


def own_causes(refusal: str) -> list[str]:
    lines = (line.partition("): ")[2] for line in refusal.splitlines())
    return sorted(_INSIDE.sub("…", line.partition("; did you mean")[0]) for line in lines)


def difference(plane: ControlPlane, each: Drawn) -> str:
    """ "": both answer the same."""
    real, own = real_refusal(plane, each.content), own_refusal(each.content)
    head = f"{each.content['kind']} {', '.join(each.changes)}\n  real: {real}\n  ours: {own}"
    if bool(real) != bool(own):
        return head
    # The paths of nodes are those of their manifest here.
    if len(each.changes) != 1 or each.content["kind"] == "Node":
        return ""
    causes = own_causes(own)
    # Of an object that cannot be decoded, a server says nothing else.
    if any("found " in cause for cause in causes):
        return ""
    if each.content["kind"] == "StatefulSet":
        real, causes = _NUMBER.sub("…", real), [_NUMBER.sub("…", cause) for cause in causes]
    said = _INSIDE.sub("…", real.partition(" is invalid: ")[2])
    return "" if all(cause in said for cause in causes) else head


def test_an_input_is_refused_where_a_real_server_refuses_it(default_plane: ControlPlane) -> None:
    print(f"seed {SEED}")
    cases = [*single_changes(), *drawn(SEED, COUNT)]
    differences = [one for each in cases if (one := difference(default_plane, each))]
    print(f"{len(cases) - len(differences)} of {len(cases)} are equal", *differences, sep="\n")
    assert differences == []
