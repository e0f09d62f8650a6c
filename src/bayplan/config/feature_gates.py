"""Feature gates: upstream's names and defaults, v1.37.

A gate is set by kube-scheduler's `--feature-gates` string or by the key `featureGates`; the string
wins. Gates of other components are known, too, because clusters pass one list to all components.
The effect of a gate is decided once, when objects are created, and not during scheduling.
Upstream: pkg/features/kube_features.go, component-base/featuregate.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from bayplan.problems import Problem, joined, suggestion

ALPHA = "alpha"
BETA = "beta"
GA = "ga"

#: Switches that set all gates of a stage that are not set by name.
STAGE_SWITCHES = {"AllAlpha": ALPHA, "AllBeta": BETA}

#: Names used in documents → the gate.
ALIASES = {"SchedulerOpportunisticBatching": "OpportunisticBatching"}

#: The component that may precede a gate on the command line.
COMPONENT_PREFIX = "kube:"

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class Gate(Struct, frozen=True):
    """A gate of the scheduler. ``needs``: gates that must be on if this gate is on, without those
    that are locked on."""

    stage: str
    default: bool
    is_locked: bool = False
    needs: tuple[str, ...] = ()


GATES: Mapping[str, Gate] = {
    "CompositePodGroup": Gate(
        ALPHA, False, needs=("GenericWorkload", "TopologyAwareWorkloadScheduling")
    ),
    "DRAAdminAccess": Gate(GA, True, is_locked=True),
    "DRAConsumableCapacity": Gate(BETA, True),
    "DRADerivedAttributes": Gate(ALPHA, False),
    "DRADeviceBindingConditions": Gate(BETA, True),
    "DRADeviceCompatibilityGroups": Gate(ALPHA, False, needs=("DRAPartitionableDevices",)),
    "DRADeviceTaintRules": Gate(GA, True, needs=("DRADeviceTaints",)),
    "DRADeviceTaints": Gate(GA, True),
    "DRAExtendedResource": Gate(GA, True, is_locked=True),
    "DRAFractionalCapacityRange": Gate(BETA, False, needs=("DRAConsumableCapacity",)),
    "DRAListTypeAttributes": Gate(ALPHA, False),
    "DRANodeAllocatableResources": Gate(ALPHA, False),
    "DRAOptionalNodeOperations": Gate(ALPHA, False),
    "DRAPartitionableDevices": Gate(BETA, True),
    "DRAPrioritizedList": Gate(GA, True, is_locked=True),
    "DRAResourceClaimDeviceStatus": Gate(GA, True, is_locked=True),
    "DRASchedulerFilterTimeout": Gate(BETA, True),
    "DRAWorkloadResourceClaims": Gate(BETA, False, needs=("GenericWorkload",)),
    "DynamicResourceAllocation": Gate(GA, True, is_locked=True),
    "GenericWorkload": Gate(BETA, False),
    "InPlacePodLevelResourcesVerticalScaling": Gate(BETA, True, needs=("PodLevelResources",)),
    "InPlacePodVerticalScaling": Gate(GA, True, is_locked=True),
    "InPlacePodVerticalScalingSchedulerPreemption": Gate(ALPHA, False),
    "InterPodAffinityHostnameFastPath": Gate(ALPHA, False),
    "MatchLabelKeysInPodAffinity": Gate(GA, True, is_locked=True),
    "MatchLabelKeysInPodTopologySpread": Gate(BETA, True),
    "NodeDeclaredFeatures": Gate(GA, True, is_locked=True),
    "NodeInclusionPolicyInPodTopologySpread": Gate(GA, True, is_locked=True),
    "NominatedNodeNameForExpectation": Gate(BETA, True),
    "OpportunisticBatching": Gate(BETA, True),
    "PodGroupPreemptionPolicy": Gate(ALPHA, False, needs=("GenericWorkload",)),
    "PodLevelResources": Gate(BETA, True),
    "SchedulerAsyncAPICalls": Gate(BETA, False),
    "SchedulerAsyncPreemption": Gate(BETA, True),
    "SchedulerPopFromBackoffQ": Gate(BETA, True),
    "SchedulerPreQueueingHints": Gate(ALPHA, False),
    "StorageCapacityScoring": Gate(BETA, True),
    "TaintTolerationComparisonOperators": Gate(ALPHA, False),
    "TopologyAwareWorkloadScheduling": Gate(ALPHA, False, needs=("GenericWorkload",)),
    "VolumeAttributesClass": Gate(GA, True, is_locked=True),
    "VolumeLimitScaling": Gate(BETA, True),
}

#: Gates that kube-scheduler does not read.
OTHER_COMPONENTS_GATES = frozenset(
    """
    APIResponseCompression APIServerIdentity APIServerWebhookAuthenticationToken
    APIServingWithRoutine AggregatedDiscoveryRemoveBetaType AllowDNSOnlyNodeCSR
    AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds
    AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs AllowUnsafeMalformedObjectDeletion
    AtomicFIFO AtomicWriteVolumeUserFields AuthorizePodWebsocketUpgradeCreatePermission
    CBORServingAndStorage CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
    CPUManagerPolicyOptions CRDObservedGenerationTracking CRDValidationRatcheting CRIListStreaming
    CSIServiceAccountTokenSecrets CSIVolumeHealth ChangeContainerStatusOnKubeletRestart
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowCBOR
    ClientsAllowTLSCacheGC ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
    CloudControllerManagerWebhook ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz
    ComponentStatusz ConcurrentWatchObjectDecode ConsistentListFromCacheSkipTimeoutFallback
    ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContainerStopSignals
    ContextualLogging CoordinatedLeaderElection CrossNamespaceVolumeDataSource
    CustomCPUCFSQuotaPeriod CustomResourceFieldSelectors DRAPartitionableDevicesType
    DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DeclarativeValidation
    DeclarativeValidationBeta DeclarativeValidationTakeover DefaultPodSysctls
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableAllocatorDualWrite
    DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion EmptyDirVolumeMode EnvFiles
    EtcdRangeStream EventedPLEG EvictionRequestAPI ExcludeAdmissionWebhookVirtualResources
    ExecProbeTimeout ExtendWebSocketsToKubelet ExternalServiceAccountTokenSigner
    GRPCContainerProbeTLS GitRepoVolumeDriver GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority H2CContainerProbe HPAConfigurableTolerance HPAGeneration
    HPAOptimizedSelectorStore HPAScaleToZero HostnameOverride HugepageAwareEviction
    ImageMaximumGCAge ImageVolume ImageVolumeWithDigest InOrderInformers
    InOrderInformersBatchProcess InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingInitContainers
    InPlacePodVerticalScalingMemoryBackedVolumes InformerResourceVersion JobManagedBy KMSv1
    KubeProxyIPVS KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint
    KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    KubeletFineGrainedAuthz KubeletInUserNamespace KubeletPSI KubeletPodResourcesDynamicResources
    KubeletPodResourcesGet KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders KubeletTracing
    ListFromCacheSnapshot LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions
    LoggingBetaOptions ManifestBasedAdmissionControlConfig
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
    MultiCIDRServiceAllocator MutableCSINodeAllocatableCount MutablePVNodeAffinity
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    MutatingAdmissionPolicy NFTablesNetlink NFTablesProxyMode NativeHistograms
    NodeControllerLeaseCircuitBreaker NodeLifecycleConditions NodeLogQuery NodeSwap OpenAPIEnums
    PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
    PodCertificateRequest PodDeletionCost PodLevelResourceManagers PodLevelResourcesFixDefaulting
    PodLevelResourcesFixKubeletQOSClass PodLogsQuerySplitStreams PodObservedGenerationTracking
    PodReadyToStartContainersCondition PodSchedulingReadiness PodTopologyLabelsAdmission PodsAPI
    PortForwardWebsockets PreferSameTrafficDistribution ProcMountType QOSReserved
    RecoverVolumeExpansionFailure RecursiveReadOnlyMounts ReduceDefaultCrashLoopBackOffDecay
    RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
    ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
    RuntimeClassInImageCriApi SELinuxChangePolicy SELinuxMount SELinuxMountReadWriteOncePod
    SeparateCacheWatchRPC SeparateTaintEvictionController ServiceAccountNodeAudienceRestriction
    ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenPodNodeInfo ServiceCIDRStatusFieldWiping ShardedListAndWatch
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA
    StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetRecreateStrategy
    StatefulSetSemanticRevisionComparison StorageNamespaceIndex StorageVersionAPI StorageVersionHash
    StorageVersionMigrator StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics SupplementalGroupsPolicy SystemdWatchdog
    TokenRequestServiceAccountUIDValidation TopologyManagerPolicyAlphaOptions
    TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport
    UserNamespacesSupport VolumeBindMountOptions WatchCacheInitializationPostStartHook WatchList
    WatchListClient WatchListCompression WebhookRoundTripLoadBalancing WinDSR WinOverlay
    WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadWithJob
    """.split()  # noqa: SIM905 - a line for each would fill a file
)

ALL_NAMES = frozenset((*GATES, *OTHER_COMPONENTS_GATES, *STAGE_SWITCHES, *ALIASES))


class FeatureGates(Struct, frozen=True):
    """All gates of the scheduler and their state."""

    values: Mapping[str, bool]
    #: The gates that were set by name, in order.
    named: tuple[str, ...] = ()

    def enabled(self, name: str) -> bool:
        """Whether a gate is on. Raises KeyError for an unknown gate."""
        return self.values[name]


def default_gates() -> FeatureGates:
    return FeatureGates({name: gate.default for name, gate in GATES.items()})


def parse_gates(text: str, origin: str) -> tuple[dict[str, bool], list[Problem]]:
    """ "A=true,kube:B=false" → {A: True, B: False}, and the errors of the other parts."""
    settings: dict[str, bool] = {}
    problems: list[Problem] = []
    for part in filter(None, text.split(",")):
        written, equals, value = (piece.strip() for piece in part.partition("="))
        component, _, name = written.rpartition(":")
        if component.strip() not in ("", "kube"):
            actual = f'unknown component "{component.strip()}"'
            problems.append(
                Problem(joined(origin, written), actual, "wanted kube, or no component")
            )
        elif value in _TRUE or value in _FALSE:
            settings[name.strip()] = value in _TRUE
        else:
            actual = f'"{value}"' if equals else "no value"
            problems.append(Problem(joined(origin, name), actual, "wanted true or false"))
    return settings, problems


def is_prefixed(part: str) -> bool:
    """Whether a gate of `--feature-gates` names its component."""
    return ":" in part.partition("=")[0]


def resolve_gates(
    *sources: tuple[str, Mapping[str, bool]],
) -> tuple[FeatureGates, list[Problem]]:
    """The gates after ``sources``, each (path, name → value). Later sources win."""
    problems: list[Problem] = []
    named: dict[str, bool] = {}
    origins: dict[str, str] = {}
    for origin, settings in sources:
        for written, value in settings.items():
            name = ALIASES.get(written, written)
            problem = _setting_problem(name, value, joined(origin, written))
            if problem is not None:
                problems.append(problem)
            else:
                named[name], origins[name] = value, joined(origin, written)
    values = {name: _value(name, named) for name in GATES}
    if not problems:
        problems += _missing_needs(values, origins)
    return FeatureGates(values, tuple(named)), problems


def _setting_problem(name: str, value: bool, path: str) -> Problem | None:
    if name not in ALL_NAMES:
        meant = suggestion(name, (*GATES, *STAGE_SWITCHES)) or suggestion(name, ALL_NAMES)
        return Problem(path, f'unknown feature gate "{name}"', meant)
    gate = GATES.get(name)
    if gate is not None and gate.is_locked and value is not gate.default:
        return Problem(path, _spelled(value), f"this gate is locked to {_spelled(gate.default)}")
    return None


def _value(name: str, named: Mapping[str, bool]) -> bool:
    gate = GATES[name]
    if name in named:
        return named[name]
    for switch, stage in STAGE_SWITCHES.items():
        if switch in named and gate.stage == stage and not gate.is_locked:
            return named[switch]
    return gate.default


def _missing_needs(values: Mapping[str, bool], origins: Mapping[str, str]) -> Iterator[Problem]:
    for name, gate in GATES.items():
        missing = [other for other in gate.needs if not values[other]]
        if values[name] and missing:
            # The gate may be on by default and another one switched off.
            culprits: Iterable[str] = (name, *missing, *STAGE_SWITCHES)
            path = next((origins[c] for c in culprits if c in origins), "featureGates")
            yield Problem(path, f"{name} is on", f"wanted {', '.join(missing)} on, too")


def _spelled(value: bool) -> str:
    return "true" if value else "false"
