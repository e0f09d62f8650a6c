"""PodGroupPodsCount: the more members of a group have a node, the better the placement.

Members that already have a node count in all placements, so that one member more or less changes
the score of a large group little. Upstream: plugins/podgrouppodscount (v1.37).
"""

from collections.abc import Sequence
from typing import final

from bayplan.framework.plugin import PlacementAssignments, PlacementScorePlugin
from bayplan.framework.types import MAX_NODE_SCORE
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState


@final
class PodGroupPodsCount(PlacementScorePlugin):
    """Scores a placement by the members that would have a node."""

    name = "PodGroupPodsCount"

    def score_placement(
        self, group: GroupState | GroupTree, placement: PlacementAssignments
    ) -> int:
        return group.assigned_count + len(placement.pods)

    def normalize_placements(
        self, group: GroupState | GroupTree, scores: Sequence[int]
    ) -> Sequence[int]:
        """In percent of the highest count, which is at least 1."""
        highest = max(scores)
        assert highest > 0, "a group without a member that fits has no feasible placement"
        return [score * MAX_NODE_SCORE // highest for score in scores]
