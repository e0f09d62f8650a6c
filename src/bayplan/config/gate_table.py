"""The feature gates of each version: data, which `feature_gates` reads.

A row of `HISTORY` is the life of one gate that kube-scheduler reads: from each version on its
stage, its default, and whether it is locked to the default; "gone" where the gate was removed, and
naming it is an error. ``needs``: gates that must be on if this gate is on, where the version has
them. Recorded from the binaries; the needs are in pkg/features/kube_features.go.
"""

from collections.abc import Mapping

from bayplan.config.kubernetes_versions import KubernetesVersion

HISTORY = """
CompositePodGroup: 1.37.0 alpha off; needs GenericWorkload TopologyAwareWorkloadScheduling
DRAAdminAccess: 1.34 beta on, 1.36 ga on locked; needs DynamicResourceAllocation
DRAConsumableCapacity: 1.34 alpha off, 1.36 beta on; needs DynamicResourceAllocation
DRADerivedAttributes: 1.37.0 alpha off
DRADeviceBindingConditions: 1.34 alpha off, 1.36 beta on; needs DRAResourceClaimDeviceStatus
DRADeviceCompatibilityGroups: 1.37.0 alpha off; needs DRAPartitionableDevices
DRADeviceTaintRules: 1.35 alpha off, 1.36 beta off, 1.37.0 ga on, 1.38-preview ga on locked;
  needs DRADeviceTaints
DRADeviceTaints: 1.34 alpha off, 1.36 beta on, 1.37.0 ga on, 1.38-preview ga on locked;
  needs DynamicResourceAllocation
DRAExtendedResource: 1.34 alpha off, 1.36 beta on, 1.37.0 ga on locked;
  needs DynamicResourceAllocation
DRAFractionalCapacityRange: 1.37.0 beta off; needs DRAConsumableCapacity
DRAListTypeAttributes: 1.36 alpha off
DRANodeAllocatableResources: 1.36 alpha off
DRAOptionalNodeOperations: 1.37.0 alpha off
DRAPartitionableDevices: 1.34 alpha off, 1.36 beta on; needs DynamicResourceAllocation
DRAPrioritizedList: 1.34 beta on, 1.36 ga on, 1.37.0 ga on locked; needs DynamicResourceAllocation
DRAResourceClaimDeviceStatus: 1.34 beta on, 1.37.0 ga on locked
DRASchedulerFilterTimeout: 1.34 beta on; needs DynamicResourceAllocation
DRAWorkloadResourceClaims: 1.36 alpha off, 1.37.0 beta off; needs GenericWorkload
DynamicResourceAllocation: 1.34 ga on, 1.35 ga on locked, 1.38-preview gone
GangScheduling: 1.35 alpha off, 1.37.0 gone; needs GenericWorkload
GenericWorkload: 1.35 alpha off, 1.37.0 beta off
InPlacePodLevelResourcesVerticalScaling: 1.35 alpha off, 1.36 beta on;
  needs PodLevelResources NodeDeclaredFeatures
InPlacePodVerticalScaling: 1.34 beta on, 1.35 ga on locked
InPlacePodVerticalScalingSchedulerPreemption: 1.37.0 alpha off
InterPodAffinityHostnameFastPath: 1.37.0 alpha off
MatchLabelKeysInPodAffinity: 1.34 ga on locked, 1.38-preview gone
MatchLabelKeysInPodTopologySpread: 1.34 beta on
NodeDeclaredFeatures: 1.35 alpha off, 1.36 beta on, 1.37.0 ga on locked
NodeInclusionPolicyInPodTopologySpread: 1.34 ga on locked
NominatedNodeNameForExpectation: 1.34 alpha off, 1.35 beta on
OpportunisticBatching: 1.35 beta on
PodGroupPreemptionPolicy: 1.37.0 alpha off; needs GenericWorkload
PodLevelResources: 1.34 beta on
SchedulerAsyncAPICalls: 1.34 beta off
SchedulerAsyncPreemption: 1.34 beta on
SchedulerPopFromBackoffQ: 1.34 beta on
SchedulerPreQueueingHints: 1.37.0 alpha off
SchedulerQueueingHints: 1.34 ga on locked, 1.37.0 gone
StorageCapacityScoring: 1.34 alpha off, 1.37.0 beta on
TaintTolerationComparisonOperators: 1.35 alpha off
TopologyAwareWorkloadScheduling: 1.36 alpha off; needs GenericWorkload
VolumeAttributesClass: 1.34 ga on, 1.36 ga on locked
VolumeLimitScaling: 1.35 alpha off, 1.37.0 beta on
WorkloadAwarePreemption: 1.36 alpha off, 1.37.0 gone; needs GangScheduling
"""

#: Gates that kube-scheduler does not read, by the first and the last version that has them.
OTHER_COMPONENTS_GATES: Mapping[tuple[KubernetesVersion, KubernetesVersion], str] = {
    (KubernetesVersion.V1_34, KubernetesVersion.V1_34): """
    AllowServiceLBStatusOnNonLB CronJobsScheduledAnnotation LoadBalancerIPMode PodIndexLabel
    ProbeHostPodSecurityStandards SizeMemoryBackedVolumes StatefulSetAutoDeletePVC
    StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks
    UserNamespacesPodSecurityStandards
    """,
    (KubernetesVersion.V1_34, KubernetesVersion.V1_35): """
    CSIMigrationPortworx HonorPVReclaimPolicy InPlacePodVerticalScalingAllocatedStatus
    InTreePluginPortworxUnregister MemoryManager ServiceTrafficDistribution
    StructuredAuthorizationConfiguration TopologyAwareHints
    WatchFromStorageWithoutResourceVersion
    """,
    (KubernetesVersion.V1_34, KubernetesVersion.V1_36): """
    APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache
    JobBackoffLimitPerIndex JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown
    OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
    PreventStaticPodAPIReferences RelaxedDNSSearchValidation ResilientWatchCacheInitialization
    RetryGenerateName SidecarContainers StreamingCollectionEncodingToJSON
    StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    """,
    (KubernetesVersion.V1_34, KubernetesVersion.V1_37): "PodSchedulingReadiness",
    (KubernetesVersion.V1_34, KubernetesVersion.V1_38): """
    APIResponseCompression APIServerIdentity APIServingWithRoutine
    AggregatedDiscoveryRemoveBetaType AllowDNSOnlyNodeCSR
    AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds
    AllowParsingUserUIDFromCertAuth AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
    CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions CPUManagerPolicyOptions
    CRDValidationRatcheting CSIVolumeHealth ClearingNominatedNodeNameAfterBinding
    ClientsAllowCBOR ClientsPreferCBOR CloudControllerManagerWebhook ClusterTrustBundle
    ClusterTrustBundleProjection ComponentFlagz ComponentStatusz ConcurrentWatchObjectDecode
    ContainerCheckpoint ContainerRestartRules ContainerStopSignals ContextualLogging
    CoordinatedLeaderElection CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod
    CustomResourceFieldSelectors DeclarativeValidation DeclarativeValidationTakeover
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableAllocatorDualWrite
    DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion EnvFiles EventedPLEG
    ExecProbeTimeout ExternalServiceAccountTokenSigner GitRepoVolumeDriver GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAScaleToZero
    HostnameOverride ImageMaximumGCAge ImageVolume InOrderInformers
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
    InformerResourceVersion JobManagedBy KMSv1 KubeletCgroupDriverFromCRI
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz
    KubeletInUserNamespace KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet
    KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders KubeletTracing
    ListFromCacheSnapshot LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions
    LoggingBetaOptions MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet
    MemoryQoS MultiCIDRServiceAllocator MutableCSINodeAllocatableCount MutatingAdmissionPolicy
    NFTablesProxyMode NativeHistograms NodeLogQuery NodeSwap OpenAPIEnums
    PodAndContainerStatsFromCRI PodCertificateRequest PodDeletionCost PodLogsQuerySplitStreams
    PodObservedGenerationTracking PodReadyToStartContainersCondition
    PodTopologyLabelsAdmission PortForwardWebsockets PreferSameTrafficDistribution ProcMountType
    QOSReserved RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    ReduceDefaultCrashLoopBackOffDecay RelaxedEnvironmentVariableValidation
    RelaxedServiceNameValidation ReloadKubeletServerCertificateFile RemoteRequestHeaderUID
    ResourceHealthStatus RotateKubeletServerCertificate RuntimeClassInImageCriApi
    SELinuxChangePolicy SELinuxMount SELinuxMountReadWriteOncePod SeparateCacheWatchRPC
    SeparateTaintEvictionController ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenPodNodeInfo SizeBasedListCostEstimate
    StatefulSetSemanticRevisionComparison StorageNamespaceIndex StorageVersionAPI
    StorageVersionHash StorageVersionMigrator StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector SupplementalGroupsPolicy SystemdWatchdog
    TokenRequestServiceAccountUIDValidation TopologyManagerPolicyAlphaOptions
    TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UserNamespacesSupport
    WatchCacheInitializationPostStartHook WatchList WatchListClient WinDSR WinOverlay
    WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork
    """,
    (KubernetesVersion.V1_35, KubernetesVersion.V1_38): """
    AuthorizePodWebsocketUpgradeCreatePermission CRDObservedGenerationTracking
    CSIServiceAccountTokenSecrets ChangeContainerStatusOnKubeletRestart
    CloudControllerManagerWatchBasedRoutesReconciliation ConstrainedImpersonation
    InOrderInformersBatchProcess MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs
    MutableSchedulingDirectivesForSuspendedJobs RestartAllContainersOnContainerExits
    StructuredAuthenticationConfigurationJWKSMetrics UserNamespacesHostNetworkSupport
    """,
    (KubernetesVersion.V1_36, KubernetesVersion.V1_38): """
    AllowServiceExternalIPs AtomicFIFO CRIListStreaming ClientsAllowCARotation
    ClientsAllowTLSCacheGC DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus
    DeclarativeValidationBeta ExtendWebSocketsToKubelet ImageVolumeWithDigest
    InPlacePodVerticalScalingInitContainers ManifestBasedAdmissionControlConfig
    PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodLevelResourceManagers PodsAPI
    ReloadKubeletClientCAFile ResourceHealthStatusMessage ServiceCIDRStatusFieldWiping
    ShardedListAndWatch StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    UnlockWhileProcessingFIFO WorkloadWithJob
    """,
    (KubernetesVersion.V1_37_0, KubernetesVersion.V1_38): """
    APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields
    ConsistentListFromCacheSkipTimeoutFallback DRAPartitionableDevicesType DefaultPodSysctls
    EmptyDirVolumeMode EtcdRangeStream EvictionRequestAPI
    ExcludeAdmissionWebhookVirtualResources GRPCContainerProbeTLS H2CContainerProbe
    HPAGeneration HPAOptimizedSelectorStore HugepageAwareEviction
    InPlacePodVerticalScalingMemoryBackedVolumes KubeProxyIPVS
    KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint NFTablesNetlink
    NodeControllerLeaseCircuitBreaker NodeLifecycleConditions PodLevelResourcesFixDefaulting
    PodLevelResourcesFixKubeletQOSClass StaleControllerConsistencyHPA
    StatefulSetRecreateStrategy VolumeBindMountOptions WatchListCompression
    WebhookRoundTripLoadBalancing
    """,
}

#: Gates that are gone, and whose feature another gate switches.
SUCCESSORS: Mapping[str, str] = {
    "GangScheduling": "GenericWorkload",
    "WorkloadAwarePreemption": "GenericWorkload",
}
