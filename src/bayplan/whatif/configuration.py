"""What another configuration of the scheduler would do with the pods that wait.

A configuration changes nothing for pods that have a node. So two models of one cluster are brought
to rest, one with the present configuration and one with the other, and compared pod by pod. A pod
that gets another node is displaced, one that gets none is left over.
"""

from bayplan.api.pod_groups import PodGroupKinds
from bayplan.model.additions import Additions
from bayplan.model.cluster_model import ClusterModel
from bayplan.sim.input.what_if import WhatIf
from bayplan.state.pods import PodInfo
from bayplan.whatif.changes import Outcome
from bayplan.whatif.comparison import WhatIfAnswer, largest_shapes, state_of, what_if_answer
from bayplan.whatif.evictions import LeftOver
from bayplan.whatif.placing import Move, Placer


def what_if_configured(
    present: ClusterModel,
    model: ClusterModel,
    name: str,
    kinds: PodGroupKinds,
    *,
    shapes: Additions | None = None,
) -> WhatIfAnswer:
    """Compare the present configuration with another one. The models stay as they are.

    ``present``, ``model``: the same cluster with the two configurations. ``name``: the name of the
    second one, for messages. ``kinds``, ``shapes``: see `what_if`.
    """
    shapes = largest_shapes(present) if shapes is None else shapes
    with present.trial(), model.trial():
        before, after = Placer(present), Placer(model)
        waiting = present.in_queue_order()
        before.place_waiting()
        after.place_waiting()
        state_before, state_after = (state_of(each, shapes, kinds) for each in (present, model))
        sources = {move.pod: move.target for move in before.moves()}
        moves, left = after.moves(), [*after.left_over(), *_of_no_profile(model, waiting)]
    same = [move for move in moves if sources.get(move.pod) == move.target]
    outcome = Outcome(
        moves=[
            Move(
                pod=move.pod,
                source=sources.get(move.pod, ""),
                target=move.target,
                waited=move.pod not in sources,
            )
            for move in moves
            if sources.get(move.pod) != move.target
        ],
        left_over=[
            LeftOver(pod=one.pod, source=sources[one.pod], message=one.message)
            for one in left
            if one.pod in sources
        ],
        waited_before=[one for one in left if one.pod not in sources],
        gone=after.gone,
    )
    states = state_before, state_after
    return what_if_answer(
        model, WhatIf(), states=states, outcome=outcome, placed_before=same, configuration=name
    )


def _of_no_profile(model: ClusterModel, waiting: list[PodInfo]) -> list[LeftOver]:
    """The pods that the scheduler leaves to others."""
    names = ", ".join(model.scheduler.profile_names)
    return [
        LeftOver(
            pod=info.key,
            message=f"no profile is named {info.spec.scheduler_name}; the profiles are {names}",
        )
        for info in waiting
        if not model.scheduler.is_responsible_for(info.spec.scheduler_name)
    ]
