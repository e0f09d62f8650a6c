"""The gates that kube-scheduler accepts and does not read: data, which `feature_gates` reads.

All components share one list of gates, and kube-scheduler checks every gate of it: whether the
version has the gate, whether it is locked, and whether the gates that it needs are on. Recorded
from the binaries; the needs are in pkg/features/kube_features.go and in kube_features.go of
apiserver.
"""

#: A life as in `gate_table.HISTORY`, and the gates that have it.
LIVES = """
1.34 alpha off:
  APIServingWithRoutine CBORServingAndStorage CPUManagerPolicyAlphaOptions CSIVolumeHealth
  ClientsAllowCBOR ClientsPreferCBOR CloudControllerManagerWebhook ContainerStopSignals
  CrossNamespaceVolumeDataSource EventedPLEG InPlacePodVerticalScalingExclusiveCPUs
  InPlacePodVerticalScalingExclusiveMemory PodLogsQuerySplitStreams QOSReserved
  ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi StorageVersionAPI
  TopologyManagerPolicyAlphaOptions WindowsCPUAndMemoryAffinity
1.34 alpha off, 1.35 beta off, 1.37.0 beta on:
  MaxUnavailableStatefulSet
1.34 alpha off, 1.35 beta off, 1.37.0 ga on:
  PodCertificateRequest StorageVersionMigrator
1.34 alpha off, 1.35 beta on:
  ClearingNominatedNodeNameAfterBinding ContainerRestartRules
  DeploymentReplicaSetTerminatingReplicas EnvFiles KubeletCrashLoopBackOffMax
  KubeletEnsureSecretPulledImages PodTopologyLabelsAdmission
1.34 alpha off, 1.35 beta on, 1.37.0 ga on locked:
  HPAConfigurableTolerance HostnameOverride
1.34 alpha off, 1.35 ga on:
  InformerResourceVersion
1.34 alpha off, 1.35 gone:
  UserNamespacesPodSecurityStandards
1.34 alpha off, 1.36 beta on:
  ComponentFlagz ComponentStatusz ResourceHealthStatus StrictIPCIDRValidation
  UnknownVersionInteroperabilityProxy
1.34 alpha off, 1.36 beta on, 1.37.0 ga on locked:
  RelaxedServiceNameValidation
1.34 alpha off, 1.36 ga on:
  CustomCPUCFSQuotaPeriod
1.34 alpha off, 1.36 gone:
  InTreePluginPortworxUnregister
1.34 alpha off, 1.37.0 beta off:
  PodAndContainerStatsFromCRI
1.34 alpha off, 1.37.0 beta on:
  AllowUnsafeMalformedObjectDeletion HPAScaleToZero KubeletInUserNamespace MemoryQoS
1.34 beta off:
  CoordinatedLeaderElection LocalStorageCapacityIsolationFSQuotaMonitoring
1.34 beta off, 1.35 beta on:
  WatchListClient
1.34 beta off, 1.35 beta on, 1.36 ga on locked:
  ImageVolume MutableCSINodeAllocatableCount
1.34 beta off, 1.36 beta on, 1.37.0 ga on locked:
  WatchCacheInitializationPostStartHook
1.34 beta off, 1.36 deprecated off, 1.37.0 deprecated off locked:
  DeclarativeValidationTakeover
1.34 beta off, 1.36 ga on:
  MutatingAdmissionPolicy
1.34 beta off, 1.36 ga on locked:
  NodeLogQuery
1.34 beta off, 1.37.0 beta on:
  ConcurrentWatchObjectDecode
1.34 beta off, 1.37.0 ga on:
  ClusterTrustBundle ClusterTrustBundleProjection SELinuxMount
1.34 beta on:
  APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth
  CPUManagerPolicyBetaOptions ContainerCheckpoint DetectCacheInconsistency GracefulNodeShutdown
  GracefulNodeShutdownBasedOnPodPriority KubeletSeparateDiskGC
  KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
  MatchLabelKeysInPodTopologySpreadSelectorMerge OpenAPIEnums PodDeletionCost
  PortForwardWebsockets ReloadKubeletServerCertificateFile RemoteRequestHeaderUID
  RotateKubeletServerCertificate ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
  StatefulSetSemanticRevisionComparison StorageVersionHash
  StructuredAuthenticationConfigurationEgressSelector TokenRequestServiceAccountUIDValidation
  TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
  UnauthenticatedHTTP2DOSMitigation WatchList WindowsGracefulNodeShutdown
1.34 beta on, 1.35 ga on locked:
  ImageMaximumGCAge JobManagedBy PodObservedGenerationTracking PreferSameTrafficDistribution
  SupplementalGroupsPolicy SystemdWatchdog
1.34 beta on, 1.36 deprecated on, 1.37.0 deprecated on locked:
  DisableCPUQuotaWithExclusiveCPUs
1.34 beta on, 1.36 ga on locked:
  DeclarativeValidation ExternalServiceAccountTokenSigner InOrderInformers
  KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet
  ProcMountType SELinuxChangePolicy SELinuxMountReadWriteOncePod UserNamespacesSupport
1.34 beta on, 1.37.0 ga on locked:
  PodReadyToStartContainersCondition
1.34 beta on, 1.37.0 gone:
  PreventStaticPodAPIReferences
1.34 deprecated off:
  AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests KMSv1
  KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
1.34 deprecated off locked, 1.35 gone:
  AllowServiceLBStatusOnNonLB
1.34 deprecated off locked, 1.36 gone:
  WatchFromStorageWithoutResourceVersion
1.34 deprecated off, 1.35 deprecated off locked:
  AllowOverwriteTerminationGracePeriodSeconds
1.34 deprecated off, 1.36 deprecated off locked:
  GitRepoVolumeDriver SeparateCacheWatchRPC
1.34 deprecated off, 1.36 gone:
  InPlacePodVerticalScalingAllocatedStatus
1.34 deprecated on:
  KubeletPodResourcesListUseActivePods StorageNamespaceIndex
1.34 deprecated on, 1.35 deprecated on locked:
  AggregatedDiscoveryRemoveBetaType
1.34 deprecated on, 1.36 deprecated on locked:
  DisableNodeKubeProxyVersion
1.34 ga on locked:
  CPUManagerPolicyOptions CRDValidationRatcheting CustomResourceFieldSelectors
  KubeletCgroupDriverFromCRI KubeletTracing MultiCIDRServiceAllocator NFTablesProxyMode NodeSwap
  RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
  RelaxedEnvironmentVariableValidation SeparateTaintEvictionController ServiceAccountTokenJTI
  ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
  ServiceAccountTokenPodNodeInfo WinDSR WinOverlay
1.34 ga on locked, 1.38-preview gone:
  PodSchedulingReadiness
1.34 ga on locked, 1.35 gone:
  CronJobsScheduledAnnotation LoadBalancerIPMode PodIndexLabel ProbeHostPodSecurityStandards
  SizeMemoryBackedVolumes StatefulSetAutoDeletePVC StrictCostEnforcementForVAP
  StrictCostEnforcementForWebhooks
1.34 ga on locked, 1.36 gone:
  CSIMigrationPortworx HonorPVReclaimPolicy MemoryManager ServiceTrafficDistribution
  StructuredAuthorizationConfiguration TopologyAwareHints
1.34 ga on locked, 1.37.0 gone:
  APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
  AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache
  JobBackoffLimitPerIndex JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown
  OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
  RelaxedDNSSearchValidation ResilientWatchCacheInitialization RetryGenerateName
  SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
  StructuredAuthenticationConfiguration
1.34 ga on, 1.35 ga on locked:
  DisableAllocatorDualWrite ExecProbeTimeout
1.34 ga on, 1.36 ga on locked:
  TopologyManagerPolicyOptions
1.35 alpha off:
  CloudControllerManagerWatchBasedRoutesReconciliation MutablePVNodeAffinity
  UserNamespacesHostNetworkSupport
1.35 alpha off, 1.36 beta on:
  ConstrainedImpersonation MutablePodResourcesForSuspendedJobs
  MutableSchedulingDirectivesForSuspendedJobs RestartAllContainersOnContainerExits
1.35 beta off, 1.36 beta on:
  CRDObservedGenerationTracking
1.35 beta on:
  AuthorizePodWebsocketUpgradeCreatePermission InOrderInformersBatchProcess
  StructuredAuthenticationConfigurationJWKSMetrics
1.35 beta on, 1.36 ga on locked:
  CSIServiceAccountTokenSecrets
1.35 deprecated off:
  ChangeContainerStatusOnKubeletRestart
1.36 alpha off:
  CRIListStreaming DRAResourcePoolStatus ImageVolumeWithDigest ShardedListAndWatch
  WorkloadWithJob
1.36 alpha off, 1.37.0 beta off:
  PodLevelResourceManagers
1.36 alpha off, 1.37.0 beta on:
  ManifestBasedAdmissionControlConfig PersistentVolumeClaimUnusedSinceTime PodsAPI
1.36 beta on:
  AtomicFIFO ClientsAllowCARotation ClientsAllowTLSCacheGC
  DRAResourceClaimGranularStatusAuthorization DeclarativeValidationBeta
  ExtendWebSocketsToKubelet ReloadKubeletClientCAFile ResourceHealthStatusMessage
  StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
  StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
  UnlockWhileProcessingFIFO
1.36 beta on, 1.37.0 ga on locked:
  InPlacePodVerticalScalingInitContainers PLEGOnDemandRelist
1.36 deprecated on:
  ServiceCIDRStatusFieldWiping
1.36 ga on:
  AllowServiceExternalIPs
1.37.0 alpha off:
  APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields
  ConsistentListFromCacheSkipTimeoutFallback DRAPartitionableDevicesType DefaultPodSysctls
  EmptyDirVolumeMode EvictionRequestAPI GRPCContainerProbeTLS H2CContainerProbe
  InPlacePodVerticalScalingMemoryBackedVolumes KubeProxyNFTablesLocalhostNodePorts
  KubeletAllocatedPodsEndpoint NodeLifecycleConditions StatefulSetRecreateStrategy
  VolumeBindMountOptions
1.37.0 beta on:
  EtcdRangeStream ExcludeAdmissionWebhookVirtualResources HPAGeneration
  HPAOptimizedSelectorStore HugepageAwareEviction NFTablesNetlink
  NodeControllerLeaseCircuitBreaker PodLevelResourcesFixDefaulting
  PodLevelResourcesFixKubeletQOSClass StaleControllerConsistencyHPA WatchListCompression
  WebhookRoundTripLoadBalancing
1.37.0 deprecated on:
  KubeProxyIPVS
"""

#: The gates that must be on if a gate is on, where the version has them; "from": the first version
#: that wants it.
NEEDS = """
AuthorizeNodeWithSelectors: AuthorizeWithSelectors
ClusterTrustBundleProjection: ClusterTrustBundle
DRAPartitionableDevicesType: DynamicResourceAllocation DRAPartitionableDevices DRAResourcePoolStatus
DRAResourceClaimGranularStatusAuthorization: DynamicResourceAllocation DRAResourceClaimDeviceStatus
DRAResourcePoolStatus: DynamicResourceAllocation
DeclarativeValidationBeta: DeclarativeValidation
DeclarativeValidationTakeover: DeclarativeValidation
DisableAllocatorDualWrite: MultiCIDRServiceAllocator
EventedPLEG from 1.37.0: PLEGOnDemandRelist
ExtendWebSocketsToKubelet: NodeDeclaredFeatures
GracefulNodeShutdownBasedOnPodPriority: GracefulNodeShutdown
H2CContainerProbe: NodeDeclaredFeatures
ImageVolumeWithDigest: ImageVolume
InPlacePodVerticalScalingAllocatedStatus: InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveCPUs: InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveMemory: InPlacePodVerticalScaling MemoryManager
InPlacePodVerticalScalingInitContainers: InPlacePodVerticalScaling NodeDeclaredFeatures
InPlacePodVerticalScalingMemoryBackedVolumes: InPlacePodVerticalScaling NodeDeclaredFeatures
KubeletAllocatedPodsEndpoint: InPlacePodVerticalScaling
MatchLabelKeysInPodTopologySpreadSelectorMerge: MatchLabelKeysInPodTopologySpread
NodeControllerLeaseCircuitBreaker: AtomicFIFO
PodCertificateRequest: AuthorizeNodeWithSelectors
PodLevelResourceManagers: PodLevelResources
PodLevelResourcesFixDefaulting: PodLevelResources
PodLevelResourcesFixKubeletQOSClass: PodLevelResources
PodLifecycleSleepActionAllowZero: PodLifecycleSleepAction
ProcMountType: UserNamespacesSupport
ResourceHealthStatus: DynamicResourceAllocation
ResourceHealthStatusMessage: ResourceHealthStatus
RestartAllContainersOnContainerExits: ContainerRestartRules NodeDeclaredFeatures
ServiceAccountTokenNodeBinding: ServiceAccountTokenNodeBindingValidation
StaleControllerConsistencyDaemonSet: AtomicFIFO
StaleControllerConsistencyHPA: AtomicFIFO
StaleControllerConsistencyJob: AtomicFIFO
StaleControllerConsistencyReplicaSet: AtomicFIFO
StaleControllerConsistencyStatefulSet: AtomicFIFO
StorageVersionAPI: APIServerIdentity
StructuredAuthenticationConfigurationEgressSelector: StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationJWKSMetrics: StructuredAuthenticationConfiguration
UnknownVersionInteroperabilityProxy: APIServerIdentity
UserNamespacesHostNetworkSupport: UserNamespacesSupport
UserNamespacesHostNetworkSupport from 1.36: NodeDeclaredFeatures
WindowsCPUAndMemoryAffinity: MemoryManager
WindowsGracefulNodeShutdown: GracefulNodeShutdown
WorkloadWithJob: GenericWorkload
"""
