"""Which admission plugins run: a value.

A configuration names changes to the default set as `--enable-admission-plugins` and
`--disable-admission-plugins` of kube-apiserver do. Upstream: pkg/kubeapiserver/options/plugins.go
(AllOrderedPlugins, DefaultOffAdmissionPlugins).
"""

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.problems import BadInputError, suggestion

#: The plugins that change or refuse what a scheduler reads, in the order of kube-apiserver.
SIMULATED = (
    "NamespaceLifecycle",
    "LimitRanger",
    "Priority",
    "DefaultTolerationSeconds",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "PodGroupProtection",
    "RuntimeClass",
    "PodTopologyLabels",
    "ResourceQuota",
)
_OFF_BY_DEFAULT = ("ExtendedResourceToleration",)
#: Other plugins that kube-apiserver runs by default. They do nothing here.
_WITHOUT_EFFECT = (
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NodeDeclaredFeatureValidator",
    "PersistentVolumeClaimResize",
    "PodResizeValidator",
    "PodSecurity",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
_ENABLE, _DISABLE = "enable-admission-plugins", "disable-admission-plugins"


class PluginSet(NamedTuple):
    """The names of the plugins that run, in their order."""

    names: tuple[str, ...] = tuple(name for name in SIMULATED if name not in _OFF_BY_DEFAULT)


DEFAULT_PLUGINS = PluginSet()


def plugin_set(enable: Sequence[str] = (), disable: Sequence[str] = ()) -> PluginSet:
    """The default set with changes. Raises BadInputError for a name that is not simulated."""
    for flag, names in ((_ENABLE, enable), (_DISABLE, disable)):
        for name in names:
            _check_name(flag, name)
    both = [name for name in enable if name in disable]
    if both:
        raise BadInputError(f"[{' '.join(both)}] in {_ENABLE} and {_DISABLE} overlapped")
    names = {*DEFAULT_PLUGINS.names, *enable}.difference(disable)
    return PluginSet(tuple(name for name in SIMULATED if name in names))


def _check_name(flag: str, name: str) -> None:
    known = (*SIMULATED, *_WITHOUT_EFFECT)
    if name not in known:
        hint = suggestion(name, known) or f"simulated are {', '.join(SIMULATED)}"
        raise BadInputError(f'{flag} plugin "{name}" is not simulated; {hint}')


def listed_names(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
