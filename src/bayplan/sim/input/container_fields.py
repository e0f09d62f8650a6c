"""Fields of pods, containers and their volumes that decide no placement, as kube-apiserver checks
them, in its words.

A rule checks one struct of a manifest, wherever it is: a probe of a pod or of a template. A struct
has only fields that are known and have values of the right type (`typed_structs`). What a server
would set by default may be absent.

Not checked are rare mistakes: in sysctls, resize policies, restart rules of containers, options of
mounts, settings of Windows, and sources of volumes that few clusters have.

Upstream: pkg/apis/core/validation, ValidatePodSpec and what it calls; apimachinery,
pkg/util/validation.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address

from bayplan.adapters.embedded.field_errors import (
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    qualified_name,
    required,
)
from bayplan.adapters.embedded.int_or_percent import NEGATIVE
from bayplan.adapters.embedded.pod_validation import NOT_A_PORT, choice
from bayplan.problems import Problem, joined
from bayplan.sim.input.workload import Content

#: A rule gets the fields of a struct and its path.
Rule = Callable[[Content, str], Iterator[Problem]]

# ---- rules of single fields -----------------------------------------------------------------


#: Type → fields that must be there.
REQUIRED: Mapping[str, Sequence[str]] = {
    "batch.v1.PodFailurePolicyOnExitCodesRequirement": ("operator",),
    "batch.v1.PodFailurePolicyRule": ("action",),
    "core.v1.AppArmorProfile": ("type",),
    "core.v1.ConfigMapEnvSource": ("name",),
    "core.v1.ConfigMapKeySelector": ("key",),
    "core.v1.ConfigMapProjection": ("name",),
    "core.v1.ConfigMapVolumeSource": ("name",),
    "core.v1.Container": ("name", "image"),
    "core.v1.CSIVolumeSource": ("driver",),
    "core.v1.DownwardAPIVolumeFile": ("path",),
    "core.v1.EnvVar": ("name",),
    "core.v1.ExecAction": ("command",),
    "core.v1.HostPathVolumeSource": ("path",),
    "core.v1.KeyToPath": ("key", "path"),
    "core.v1.NFSVolumeSource": ("server", "path"),
    "core.v1.ObjectFieldSelector": ("fieldPath",),
    "core.v1.PodOS": ("name",),
    "core.v1.ResourceFieldSelector": ("resource",),
    "core.v1.SeccompProfile": ("type",),
    "core.v1.SecretEnvSource": ("name",),
    "core.v1.SecretKeySelector": ("key",),
    "core.v1.SecretProjection": ("name",),
    "core.v1.SecretVolumeSource": ("secretName",),
    "core.v1.ServiceAccountTokenProjection": ("path",),
    "core.v1.Sysctl": ("name",),
    "core.v1.VolumeDevice": ("name", "devicePath"),
    "node.v1.RuntimeClass": ("handler",),
    "storage.v1.StorageClass": ("provisioner",),
}
_PULLS = {"pullPolicy": ("Always", "IfNotPresent", "Never")}
_PROFILES = {"type": ("Localhost", "RuntimeDefault", "Unconfined")}
_HOST_PATHS = " BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket"
#: Type → field → its values.
CHOICES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": dict.fromkeys(
        ("whenDeleted", "whenScaled"), ("Retain", "Delete")
    ),
    "batch.v1.PodFailurePolicyOnExitCodesRequirement": {"operator": ("In", "NotIn")},
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": ("False", "True", "Unknown")},
    "batch.v1.PodFailurePolicyRule": {"action": ("Count", "FailIndex", "FailJob", "Ignore")},
    "core.v1.AppArmorProfile": _PROFILES,
    "core.v1.Container": {
        "imagePullPolicy": _PULLS["pullPolicy"],
        "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    },
    "core.v1.HTTPGetAction": {"scheme": ("HTTP", "HTTPS")},
    "core.v1.HostPathVolumeSource": {"type": _HOST_PATHS.split(" ")},
    "core.v1.ImageVolumeSource": _PULLS,
    "core.v1.PodSecurityContext": {"fsGroupChangePolicy": ("Always", "OnRootMismatch")},
    "core.v1.PodSpec": {
        "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    },
    "core.v1.SeccompProfile": _PROFILES,
    "core.v1.SecurityContext": {"procMount": ("Default", "Unmasked")},
}
_TIMES = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds")
_THRESHOLDS = ("successThreshold", "failureThreshold")
_MODE = ((0, 0o777), "must be a number between 0 and 0777 (octal), both inclusive")
_ID = ((0, 2**31 - 1), "must be between 0 and 2147483647, inclusive")
_COUNT = ((0, 2**63 - 1), NEGATIVE)
#: Type → field → the smallest and the largest number, and the words for others.
RANGES: Mapping[str, Mapping[str, tuple[tuple[int, int], str]]] = {
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": _COUNT},
    "apps.v1.DeploymentSpec": {"revisionHistoryLimit": _COUNT},
    "core.v1.ConfigMapVolumeSource": {"defaultMode": _MODE},
    "core.v1.KeyToPath": {"mode": _MODE},
    "core.v1.PodSecurityContext": dict.fromkeys(("fsGroup", "runAsUser", "runAsGroup"), _ID),
    "core.v1.Probe": {
        **dict.fromkeys((*_TIMES, *_THRESHOLDS), _COUNT),
        "terminationGracePeriodSeconds": ((1, 2**63 - 1), "must be greater than 0"),
    },
    "core.v1.SecretVolumeSource": {"defaultMode": _MODE},
    "core.v1.SecurityContext": dict.fromkeys(("runAsUser", "runAsGroup"), _ID),
}


#: The types that have rules of single fields.
SIMPLE = frozenset((*REQUIRED, *CHOICES, *RANGES))


def simple_rules(name: str, fields: Content, path: str) -> Iterator[Problem]:
    """The rules of single fields of a struct of this type."""
    for field in REQUIRED.get(name, ()):
        if not fields.get(field):
            yield required(joined(path, field))
    for field, choices in CHOICES.get(name, {}).items():
        yield from choice(fields.get(field), f"{path}.{field}", choices)
    for field, ((low, high), words) in RANGES.get(name, {}).items():
        if not low <= fields.get(field, low) <= high:
            yield invalid(f"{path}.{field}", fields[field], words)


# ---- names and paths ------------------------------------------------------------------------


_NOT_A_VARIABLE = (
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='"
)


def _variable(name: str, path: str) -> Iterator[Problem]:
    if not (name.isascii() and name.isprintable()) or "=" in name:
        yield invalid(path, name, _NOT_A_VARIABLE)


def _port_name(name: str, path: str) -> Iterator[Problem]:
    faults = {
        "must be no more than 15 characters": len(name) > 15,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": (
            re.fullmatch("[-a-z0-9]+", name) is None
        ),
        "must contain at least one letter (a-z)": re.search("[a-z]", name) is None,
        "must not contain consecutive hyphens": "--" in name,
        "must not begin or end with a hyphen": name[:1] == "-" or name[-1:] == "-",
    }
    for words, is_fault in faults.items():
        if is_fault:
            yield invalid(path, name, words)


def _inner_path(value: str, path: str) -> Iterator[Problem]:
    """A path inside a volume."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def _file(fields: Content, path: str) -> Iterator[Problem]:
    """A file of a volume: KeyToPath, DownwardAPIVolumeFile."""
    yield from _inner_path(fields.get("path", ""), f"{path}.path")


def _key(fields: Content, path: str) -> Iterator[Problem]:
    """A key of a ConfigMap or of a Secret, whose name a server does not take as absent."""
    yield from dns_subdomain(fields.get("name", ""), f"{path}.name")


# ---- variables ------------------------------------------------------------------------------


_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def _env_var(fields: Content, path: str) -> Iterator[Problem]:
    yield from _variable(fields.get("name", ""), f"{path}.name")
    source, place = fields.get("valueFrom"), f"{path}.valueFrom"
    if source is None:
        return
    count = sum(name in source for name in _SOURCES)
    if not count:
        names = ", ".join(f"`{name}`" for name in _SOURCES[:-1])
        yield invalid(place, "", f"must specify one of: {names} or `{_SOURCES[-1]}`")
    elif fields.get("value"):
        yield invalid(place, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield invalid(place, "", "may not have more than one field specified at a time")


_OF_PODS = ("metadata.name", "metadata.namespace", "metadata.uid")
_OF_FILES = ("metadata.annotations", "metadata.labels", *_OF_PODS)
_OF_SPECS = ("spec.nodeName", "spec.serviceAccountName")
_OF_STATUS = ("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
_OF_ENV = (*_OF_PODS, *_OF_SPECS, *_OF_STATUS)
#: Fields of pods that neither variables nor files may have.
_FURTHER = ("spec.restartPolicy", "spec.schedulerName", "status.phase")
_WITH_KEYS = re.compile(r"metadata\.(annotations|labels)\['(.*)'\]")


def _field_ref(fields: Content, path: str) -> Iterator[Problem]:
    name, choices = fields.get("fieldPath", ""), _OF_ENV if ".env[" in path else _OF_FILES
    if name == "spec.host":  # an old name that upstream still reads
        name = "spec.nodeName"
    keyed = _WITH_KEYS.fullmatch(name)
    if keyed is not None:
        key = keyed[2].lower() if keyed[1] == "annotations" else keyed[2]
        yield from qualified_name(key, path)
    elif name in (*_OF_ENV, *_OF_FILES, *_FURTHER):
        yield from choice(name, f"{path}.fieldPath", choices)
    elif name:
        detail = f"error converting fieldPath: field label not supported: {name}"
        yield invalid(f"{path}.fieldPath", name, detail, choices)


_RESOURCES = ("cpu", "ephemeral-storage", "memory")
_OF_RESOURCES = [f"{part}.{name}" for part in ("limits", "requests") for name in _RESOURCES]


def _resource_ref(fields: Content, path: str) -> Iterator[Problem]:
    name = fields.get("resource", "")
    if not name.startswith(("requests.hugepages-", "limits.hugepages-")):
        yield from choice(name, f"{path}.resource", _OF_RESOURCES)


def _env_from(fields: Content, path: str) -> Iterator[Problem]:
    yield from _variable(fields.get("prefix", ""), f"{path}.prefix")
    count = sum(name in fields for name in ("configMapRef", "secretRef"))
    # Upstream names the list.
    place = path.rpartition("[")[0]
    if not count:
        yield invalid(place, "", "must specify one of: `configMapRef` or `secretRef`")
    elif count > 1:
        yield invalid(place, "", "may not have more than one field specified at a time")


# ---- probes and handlers --------------------------------------------------------------------


def _handler(fields: Content, path: str, names: Sequence[str]) -> Iterator[Problem]:
    names = [name for name in names if name in fields]
    if not names:
        yield required(path, "must specify a handler type")
    for name in names[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _probe(fields: Content, path: str) -> Iterator[Problem]:
    yield from _handler(fields, path, ("exec", "httpGet", "tcpSocket", "grpc"))
    if path.endswith(".readinessProbe"):
        grace = fields.get("terminationGracePeriodSeconds")
        if grace is not None:
            detail = "must not be set for readinessProbes"
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, detail)
    elif fields.get("successThreshold", 0) not in (0, 1):
        yield invalid(f"{path}.successThreshold", fields["successThreshold"], "must be 1")


def _hook(fields: Content, path: str) -> Iterator[Problem]:
    yield from _handler(fields, path, ("exec", "httpGet", "tcpSocket", "sleep"))


def _port(fields: Content, path: str) -> Iterator[Problem]:
    """The port of a handler: a number, or the name of a port."""
    port = fields.get("port", 0)
    if isinstance(port, str):
        yield from _port_name(port, f"{path}.port")
    elif not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, NOT_A_PORT)


# ---- containers -----------------------------------------------------------------------------


_OF_RUNNING = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def _container(fields: Content, path: str) -> Iterator[Problem]:
    image = fields.get("image", "")
    if ".template." not in path and image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    names: set[str] = set()
    for index, port in enumerate(fields.get("ports", ())):
        name, place = port.get("name"), f"{path}.ports[{index}].name"
        if name in names:
            yield duplicate(place, name)
        elif name:
            yield from _port_name(name, place)
            names.add(name)
    if ".initContainers[" in path and fields.get("restartPolicy") != "Always":
        for name in _OF_RUNNING:
            if name in fields:
                detail = "may not be set for init containers without restartPolicy=Always"
                yield forbidden(f"{path}.{name}", detail)
    for mount in fields.get("volumeMounts", ()):
        # Upstream names the list.
        yield from _inner_path(mount.get("subPath", ""), f"{path}.volumeMounts.subPath")


def _security(fields: Content, path: str) -> Iterator[Problem]:
    if fields.get("allowPrivilegeEscalation") is not False:
        return
    what = "cannot set `allowPrivilegeEscalation` to false and"
    if fields.get("privileged"):
        yield invalid(path, fields, f"{what} `privileged` to true")
    if "CAP_SYS_ADMIN" in fields.get("capabilities", {}).get("add", ()):
        yield invalid(path, fields, f"{what} `capabilities.Add` CAP_SYS_ADMIN")


# ---- pods -----------------------------------------------------------------------------------


def _pod(fields: Content, path: str) -> Iterator[Problem]:
    is_template = path != "spec"
    for field, check in _NAMES.items():
        if fields.get(field):
            yield from check(fields[field], f"{path}.{field}")
    if fields.get("ephemeralContainers"):
        words = "cannot be set on create"
        detail = "ephemeral containers not allowed in pod template" if is_template else words
        yield forbidden(f"{path}.ephemeralContainers", detail)
    if fields.get("dnsPolicy") == "None":
        yield from _own_dns(fields.get("dnsConfig"), f"{path}.dnsConfig")


_NAMES: Mapping[str, Callable[[str, str], Iterator[Problem]]] = {
    "hostname": dns_label,
    "subdomain": dns_label,
    "serviceAccountName": dns_subdomain,
}


def _own_dns(config: Content | None, path: str) -> Iterator[Problem]:
    if config is None:
        yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
    elif not config.get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{path}.nameservers", detail)


def _host_alias(fields: Content, path: str) -> Iterator[Problem]:
    address = fields.get("ip", "")
    try:
        ip_address(address)
    except ValueError:
        detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield invalid(f"{path}.ip", address, detail)
    for index, name in enumerate(fields.get("hostnames", ())):
        yield from dns_subdomain(name, f"{path}.hostnames[{index}]")


RULES: Mapping[str, Rule] = {
    "core.v1.ConfigMapKeySelector": _key,
    "core.v1.Container": _container,
    "core.v1.DownwardAPIVolumeFile": _file,
    "core.v1.EnvFromSource": _env_from,
    "core.v1.EnvVar": _env_var,
    "core.v1.GRPCAction": _port,
    "core.v1.HTTPGetAction": _port,
    "core.v1.HostAlias": _host_alias,
    "core.v1.KeyToPath": _file,
    "core.v1.LifecycleHandler": _hook,
    "core.v1.ObjectFieldSelector": _field_ref,
    "core.v1.PodSpec": _pod,
    "core.v1.Probe": _probe,
    "core.v1.ResourceFieldSelector": _resource_ref,
    "core.v1.SecretKeySelector": _key,
    "core.v1.SecurityContext": _security,
    "core.v1.TCPSocketAction": _port,
}
