"""Caching: what a plugin promises about its results, so that the scheduler may cache them.

A promise that does not hold makes the node of a pod depend on what was scheduled before the pod.
`bayplan.testing.check_plugin` tries to break each promise and names the one that is broken.

The attributes that `Caching` replaces are accepted for one release, with a DeprecationWarning.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

from bayplan.state.change_log import ALL_FACETS, Facet


@final
@dataclass(frozen=True, slots=True)
class Caching:
    """The promises of one plugin about its results for pods that `sign_pod` signs."""

    #: The result for a node depends on these parts of the node and on no other part.
    facets: Facet = ALL_FACETS
    #: The same for pods that `sign_pod` signs as (): the result depends on these parts of the node
    #: and on no object of `kinds`. None: no further promise about such pods.
    facets_if_unconcerned: Facet | None = None
    #: Of a node, the result depends on allocatable amounts and on what pods use (amounts, host
    #: ports), and on nothing else: nodes that are equal in these get equal results.
    amounts_only: bool = False
    #: `sign_pod` reads `pod.shape` and `pod.node_name` only: it is called once for all pods of one
    #: template.
    signs_template: bool = False
    #: PreFilter and PreScore return and store the same (a plugin with scope "cluster": skip the
    #: same) for all pods of one template and owner, until an object, or a pod with affinity terms,
    #: is added, changed or removed: they are called for one of these pods.
    pre_state_per_template: bool = False
    #: Of the objects of these `kinds`, the result depends only on what changes `facets` of a node:
    #: a change of such an object does not drop all results.
    kinds_in_facets: tuple[str, ...] = ()


#: What holds for a plugin without any promise.
NO_PROMISES: Final = Caching()

#: Old attribute of a plugin → field of Caching.
REPLACED: Final[Mapping[str, str]] = {
    "facets": "facets",
    "facets_unless_signed": "facets_if_unconcerned",
    "follows_amounts": "amounts_only",
    "signs_shape": "signs_template",
    "prepares_alike": "pre_state_per_template",
    "row_kinds": "kinds_in_facets",
}


def with_replaced(
    owner: str, caching: Caching | None, old: Mapping[str, Any], stacklevel: int
) -> Caching | None:
    """``caching`` with the values of old attributes; warns with what to write instead.

    ``old``: attribute → value. ``stacklevel``: the frame that the warning names, counted from the
    caller.
    """
    if not old:
        return caching
    fields = {REPLACED[name]: value for name, value in old.items()}
    written = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    warnings.warn(
        f"{owner}: {', '.join(old)} will not be read in the next release; "
        f"write caching = Caching({written})",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )
    return replace(caching or NO_PROMISES, **fields)
