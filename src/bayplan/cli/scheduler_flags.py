"""The flags of kube-scheduler: those that set a field, those without effect, and removed ones.

A manifest that was written for kube-scheduler starts Bayplan without edits. So Bayplan accepts each
flag of v1.37: with its meaning, or with a remark that says why the flag has no effect. A flag of
older versions is refused, with what replaces it. A flag that sets a field of the configuration
overrides the file. As in kube-scheduler, a deprecated flag has no effect if there is a file.
Upstream: cmd/kube-scheduler/app/options.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from bayplan.cli.options import together
from bayplan.cli.pflag import GoBool, GoDuration, NameList
from bayplan.durations import duration_seconds
from bayplan.serving.access import OPEN_PATHS, AccessPolicy
from bayplan.serving.certificates import CIPHER_SUITES, TLS_VERSIONS, TlsSettings
from bayplan.serving.delegation import DelegationOptions
from bayplan.serving.scheduler_server import ServingOptions

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class FieldFlag:
    """A flag that sets one field of the configuration."""

    name: str
    #: From the top of the configuration.
    path: tuple[str, ...]
    kind: click.ParamType
    metavar: str = ""
    #: Without effect if there is a configuration file.
    is_deprecated: bool = False

    @property
    def parameter(self) -> str:
        return self.name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class IdleFlag:
    """A flag of kube-scheduler that has no effect in Bayplan."""

    name: str
    kind: click.ParamType
    reason: str

    @property
    def parameter(self) -> str:
        return self.name.replace("-", "_")


_ELECTION, _CONNECTION = "leaderElection", "clientConnection"

FIELD_FLAGS = (
    FieldFlag("leader-elect", (_ELECTION, "leaderElect"), GoBool(), "BOOL"),
    FieldFlag(
        "leader-elect-lease-duration", (_ELECTION, "leaseDuration"), GoDuration(), "DURATION"
    ),
    FieldFlag(
        "leader-elect-renew-deadline", (_ELECTION, "renewDeadline"), GoDuration(), "DURATION"
    ),
    FieldFlag("leader-elect-retry-period", (_ELECTION, "retryPeriod"), GoDuration(), "DURATION"),
    FieldFlag("leader-elect-resource-lock", (_ELECTION, "resourceLock"), click.STRING, "leases"),
    FieldFlag("leader-elect-resource-name", (_ELECTION, "resourceName"), click.STRING, "NAME"),
    FieldFlag(
        "leader-elect-resource-namespace", (_ELECTION, "resourceNamespace"), click.STRING, "NAME"
    ),
    FieldFlag("kube-api-qps", (_CONNECTION, "qps"), click.FLOAT, "NUMBER", is_deprecated=True),
    FieldFlag("kube-api-burst", (_CONNECTION, "burst"), click.INT, "NUMBER", is_deprecated=True),
    FieldFlag("kube-api-content-type", (_CONNECTION, "contentType"), click.STRING, "TYPE", True),
    FieldFlag("profiling", ("enableProfiling",), GoBool(), "BOOL", is_deprecated=True),
    FieldFlag(
        "contention-profiling", ("enableContentionProfiling",), GoBool(), "BOOL", is_deprecated=True
    ),
)

_HTTP_1 = "the endpoints speak HTTP/1.1 only"
_NO_FRONT_PROXY = "the headers of a front proxy are never trusted"
_VERSION = "--kubernetes, or the API server, says which version answers"
_NO_BUFFER = "each line is written immediately, to standard error"
_ALL_METRICS = "label values are not limited"

IDLE_FLAGS = (
    IdleFlag("disable-http2-serving", GoBool(), _HTTP_1),
    IdleFlag("http2-max-streams-per-connection", click.INT, _HTTP_1),
    IdleFlag("permit-address-sharing", GoBool(), "the address is always shared (SO_REUSEADDR)"),
    IdleFlag("tls-curve-preferences", click.STRING, "OpenSSL's preferences apply"),
    IdleFlag("requestheader-allowed-names", click.STRING, _NO_FRONT_PROXY),
    IdleFlag("requestheader-client-ca-file", click.STRING, _NO_FRONT_PROXY),
    IdleFlag("requestheader-extra-headers-prefix", click.STRING, _NO_FRONT_PROXY),
    IdleFlag("requestheader-group-headers", click.STRING, _NO_FRONT_PROXY),
    IdleFlag("requestheader-uid-headers", click.STRING, _NO_FRONT_PROXY),
    IdleFlag("requestheader-username-headers", click.STRING, _NO_FRONT_PROXY),
    IdleFlag("emulated-version", click.STRING, _VERSION),
    IdleFlag("min-compatibility-version", click.STRING, _VERSION),
    IdleFlag("allow-metric-labels", click.STRING, _ALL_METRICS),
    IdleFlag("allow-metric-labels-manifest", click.STRING, _ALL_METRICS),
    IdleFlag("show-hidden-metrics-for-version", click.STRING, "no metric is hidden"),
    IdleFlag("log-flush-frequency", GoDuration(), _NO_BUFFER),
    IdleFlag("log-json-info-buffer-size", click.STRING, _NO_BUFFER),
    IdleFlag("log-json-split-stream", GoBool(), _NO_BUFFER),
    IdleFlag("log-text-info-buffer-size", click.STRING, _NO_BUFFER),
    IdleFlag("log-text-split-stream", GoBool(), _NO_BUFFER),
    IdleFlag("vmodule", click.STRING, "all modules have the same verbosity: -v"),
)

_STANDARD_ERROR = "the log goes to standard error"
_PROFILES = "configure profiles in the file that --config names"

#: Flags that older versions of kube-scheduler had → what to use instead.
REMOVED_FLAGS = {
    "address": "use --bind-address",
    "port": "use --secure-port",
    "scheduler-name": "set schedulerName of a profile in the file that --config names",
    "algorithm-provider": _PROFILES,
    "policy-config-file": _PROFILES,
    "policy-configmap": _PROFILES,
    "policy-configmap-namespace": _PROFILES,
    "use-legacy-policy-config": _PROFILES,
    "hard-pod-affinity-symmetric-weight": (
        "set hardPodAffinityWeight in the args of InterPodAffinity, in the file that --config names"
    ),
    "lock-object-name": "use --leader-elect-resource-name",
    "lock-object-namespace": "use --leader-elect-resource-namespace",
    "logtostderr": _STANDARD_ERROR,
    "alsologtostderr": _STANDARD_ERROR,
    "stderrthreshold": _STANDARD_ERROR,
    "log-dir": _STANDARD_ERROR,
    "log-file": _STANDARD_ERROR,
    "log-file-max-size": _STANDARD_ERROR,
    "one-output": _STANDARD_ERROR,
    "add-dir-header": "lines name the logger, not the file",
    "skip-headers": "use --logging-format=json",
    "skip-log-headers": _STANDARD_ERROR,
    "log-backtrace-at": "there is no replacement",
}


def field_options(command: F) -> F:
    """Options for `FIELD_FLAGS`."""
    for flag in reversed(FIELD_FLAGS):
        text = f"Set {'.'.join(flag.path)}"
        text += ". Deprecated: no effect together with --config" if flag.is_deprecated else ""
        add = click.option(f"--{flag.name}", type=flag.kind, metavar=flag.metavar, help=text)
        command = add(command)
    return command


def idle_options(command: F) -> F:
    """Options for `IDLE_FLAGS`, hidden in the help."""
    for flag in reversed(IDLE_FLAGS):
        add = click.option(f"--{flag.name}", type=flag.kind, multiple=True, hidden=True)
        command = add(command)
    return command


_ENDPOINT_OPTIONS = (
    click.option(
        "--bind-address", default="127.0.0.1", show_default=True, help="Address of the endpoints"
    ),
    click.option(
        "--secure-port",
        type=click.IntRange(0, 65535),
        default=10259,
        show_default=True,
        help="Port of the endpoints. 0: no endpoints",
    ),
    click.option(
        "--permit-port-sharing",
        type=GoBool(),
        default=False,
        metavar="BOOL",
        help="Let several processes listen on the port",
    ),
    click.option(
        "--tls-cert-file",
        default="",
        metavar="FILE",
        help="Certificate of the endpoints; needs --tls-private-key-file",
    ),
    click.option(
        "--tls-private-key-file", default="", metavar="FILE", help="Private key of the certificate"
    ),
    click.option(
        "--cert-dir",
        default="",
        metavar="DIR",
        help="Folder of kube-scheduler.crt and kube-scheduler.key. Missing files are created",
    ),
    click.option(
        "--tls-sni-cert-key",
        "named_pairs",
        multiple=True,
        metavar="CERT,KEY[:NAMES]",
        help="Additional certificate and key for these host names; may be repeated",
    ),
    click.option(
        "--tls-min-version",
        type=click.Choice(tuple(TLS_VERSIONS)),
        default=None,
        help="Oldest version of TLS that clients may use",
    ),
    click.option(
        "--tls-cipher-suites",
        type=NameList(tuple(CIPHER_SUITES)),
        multiple=True,
        metavar="NAME,…",
        help="Cipher suites for TLS 1.2, by Go's names",
    ),
    click.option(
        "--disabled-metrics",
        type=NameList(),
        multiple=True,
        metavar="NAME,…",
        help="Metrics to leave out of /metrics",
    ),
    click.option(
        "--client-ca-file",
        default="",
        metavar="FILE",
        help="Authorities whose client certificates the endpoints accept",
    ),
    click.option(
        "--authentication-kubeconfig",
        default="",
        metavar="FILE",
        help="Credentials for token reviews. Default: those of the scheduler",
    ),
    click.option(
        "--authentication-skip-lookup",
        type=GoBool(),
        default=False,
        metavar="BOOL",
        help="Do not read the cluster's authentication settings",
    ),
    click.option(
        "--authentication-tolerate-lookup-failure",
        type=GoBool(),
        default=True,
        metavar="BOOL",
        help="Continue if the authentication settings cannot be read",
    ),
    click.option(
        "--authentication-token-webhook-cache-ttl",
        "token_ttl",
        type=GoDuration(),
        default="10s",
        metavar="DURATION",
        help="How long to cache the result of a token review",
    ),
    click.option(
        "--authorization-kubeconfig",
        default="",
        metavar="FILE",
        help="Credentials for access reviews. Default: those of the scheduler",
    ),
    click.option(
        "--authorization-always-allow-paths",
        "open_paths",
        type=NameList(),
        multiple=True,
        default=(tuple(sorted(OPEN_PATHS)),),
        metavar="PATH,…",
        help="Paths that everybody may read",
    ),
    click.option(
        "--authorization-webhook-cache-authorized-ttl",
        "allowed_ttl",
        type=GoDuration(),
        default="10s",
        metavar="DURATION",
        help="How long to cache a granted permission",
    ),
    click.option(
        "--authorization-webhook-cache-unauthorized-ttl",
        "denied_ttl",
        type=GoDuration(),
        default="10s",
        metavar="DURATION",
        help="How long to cache a denied permission",
    ),
)


#: Options for the endpoints: address, TLS, authentication, authorization.
endpoint_options = together(_ENDPOINT_OPTIONS)


def serving_options(options: Mapping[str, Any]) -> ServingOptions:
    """The values of `endpoint_options`."""
    policy = AccessPolicy(
        open_paths=frozenset(path for paths in options["open_paths"] for path in paths),
        token_seconds=duration_seconds(options["token_ttl"]),
        allowed_seconds=duration_seconds(options["allowed_ttl"]),
        denied_seconds=duration_seconds(options["denied_ttl"]),
    )
    delegation = DelegationOptions(
        authentication_kubeconfig=options["authentication_kubeconfig"],
        authorization_kubeconfig=options["authorization_kubeconfig"],
        skips_lookup=options["authentication_skip_lookup"],
        tolerates_lookup_failure=options["authentication_tolerate_lookup_failure"],
        policy=policy,
    )
    tls = TlsSettings(
        version_min=options["tls_min_version"] or "",
        cipher_suites=tuple(name for names in options["tls_cipher_suites"] for name in names),
        named_pairs=options["named_pairs"],
    )
    return ServingOptions(
        address=options["bind_address"],
        port=options["secure_port"],
        cert_file=options["tls_cert_file"],
        key_file=options["tls_private_key_file"],
        cert_dir=options["cert_dir"],
        client_ca_file=options["client_ca_file"],
        tls=tls,
        is_port_shared=options["permit_port_sharing"],
        hidden_metrics=frozenset(name for names in options["disabled_metrics"] for name in names),
        delegation=delegation,
    )


def overrides(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that flags set, as in a configuration file."""
    fields: dict[str, Any] = {}
    for flag in _set_flags(FIELD_FLAGS, options):
        if flag.is_deprecated and options["config_path"]:
            continue
        *parents, name = flag.path
        part = fields
        for parent in parents:
            part = part.setdefault(parent, {})
        part[name] = options[flag.parameter]
    return fields


def flag_remarks(options: Mapping[str, Any]) -> Iterator[str]:
    """One line for each flag that was set and has no effect."""
    for flag in _set_flags(FIELD_FLAGS, options):
        if flag.is_deprecated and options["config_path"]:
            field = ".".join(flag.path)
            yield f"--{flag.name} has no effect together with --config; set {field} in the file"
        elif "rofiling" in flag.path[0]:
            yield f"--{flag.name} has no effect: there is no Go profiler"
        elif flag.name == "kube-api-content-type" and "json" not in options[flag.parameter]:
            yield f"--{flag.name} has no effect: requests and responses are JSON"
    for flag in _set_flags(IDLE_FLAGS, options):
        yield f"--{flag.name} has no effect: {flag.reason}"


A = TypeVar("A", FieldFlag, IdleFlag)


def _set_flags(flags: Iterable[A], options: Mapping[str, Any]) -> Iterator[A]:
    return (flag for flag in flags if options[flag.parameter] not in (None, ()))
