{{- define "bayplan.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "bayplan.fullname" -}}
{{- $name := include "bayplan.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bayplan.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "bayplan.fullname" .) -}}
{{- end -}}

{{/* Cluster-wide objects of two releases with one name must have different names. */}}
{{- define "bayplan.clusterName" -}}
{{- $name := include "bayplan.fullname" . -}}
{{- if eq $name .Release.Namespace -}}{{- $name -}}{{- else -}}{{- printf "%s-%s" .Release.Namespace $name -}}{{- end -}}
{{- end -}}

{{- define "bayplan.selector" -}}
app.kubernetes.io/name: {{ include "bayplan.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bayplan.labels" -}}
{{ include "bayplan.selector" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A digest names one image; a tag may be moved to another. */}}
{{- define "bayplan.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Lease has the name of the release, so two releases never share a Lease. */}}
{{- define "bayplan.config" -}}
{{- $election := dict "leaderElect" .Values.leaderElection.enabled "leaseDuration" .Values.leaderElection.leaseDuration "renewDeadline" .Values.leaderElection.renewDeadline "retryPeriod" .Values.leaderElection.retryPeriod "resourceName" (include "bayplan.fullname" .) "resourceNamespace" .Release.Namespace -}}
{{- merge (dict "leaderElection" $election) .Values.config | toYaml -}}
{{- end -}}

{{/* An endpoint of a ServiceMonitor or a PodMonitor: the arguments are the values of the monitor. */}}
{{- define "bayplan.scrape" -}}
- port: https
  scheme: https
  path: /metrics
  interval: {{ .interval }}
  {{- with .scrapeTimeout }}
  scrapeTimeout: {{ . }}
  {{- end }}
  # Each replica creates its own certificate.
  tlsConfig: {insecureSkipVerify: true}
  {{- with .authorization }}
  authorization: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .relabelings }}
  relabelings: {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .metricRelabelings }}
  metricRelabelings: {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Selects the metrics of this release, not those of kube-scheduler, which have the same names. The
arguments are the context and more matchers. */}}
{{- define "bayplan.metricSelector" -}}
{{- $context := index . 0 -}}
{{- $more := index . 1 -}}
{namespace={{ $context.Release.Namespace | quote }}, job=~{{ printf "(.+/)?%s" (include "bayplan.fullname" $context) | quote }}{{ with $more }}, {{ . }}{{ end }}}
{{- end -}}
