{{- define "bayplan.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
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
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bayplan.labels" -}}
{{ include "bayplan.selector" . }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* The Lease has the name of the release, so two releases never share a Lease. */}}
{{- define "bayplan.config" -}}
{{- $election := dict "leaderElect" .Values.leaderElection.enabled "leaseDuration" .Values.leaderElection.leaseDuration "renewDeadline" .Values.leaderElection.renewDeadline "retryPeriod" .Values.leaderElection.retryPeriod "resourceName" (include "bayplan.fullname" .) "resourceNamespace" .Release.Namespace -}}
{{- merge (dict "leaderElection" $election) .Values.config | toYaml -}}
{{- end -}}
