"""What feature gates change for an API server and its controllers: a value."""

from typing import Final, NamedTuple

from bayplan.config.feature_gates import GANGS, FeatureGates


class ApiFeatures(NamedTuple):
    """The features of one server."""

    #: Whether a new PodGroup is protected from its deletion as long as it has pods: gate
    #: GenericWorkload.
    protects_groups: bool = False
    #: Whether a PodGroup may list claims that its pods share: gate DRAWorkloadResourceClaims.
    has_group_claims: bool = False


#: All of them are off.
NO_FEATURES: Final = ApiFeatures()


def api_features(gates: FeatureGates) -> ApiFeatures:
    """The features of a server that has the gates of a scheduler."""
    return ApiFeatures(
        protects_groups=gates.enabled(GANGS),
        has_group_claims=gates.enabled("DRAWorkloadResourceClaims"),
    )
