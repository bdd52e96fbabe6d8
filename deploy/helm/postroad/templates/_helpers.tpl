{{- define "postroad.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "postroad.labels" -}}
app.kubernetes.io/name: postroad
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "postroad.selector" -}}
app.kubernetes.io/name: postroad
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "postroad.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "postroad.domain" -}}
{{ include "postroad.name" . }}-nodes.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{- /* Every node, for clients that begin with a list. */ -}}
{{- define "postroad.bootstrap" -}}
{{- $nodes := list -}}
{{- range $number := until (int .Values.replicas) -}}
{{- $nodes = append $nodes (printf "%s-%d.%s:%d" (include "postroad.name" $) $number (include "postroad.domain" $) (int $.Values.kafka.port)) -}}
{{- end -}}
{{- if .Values.tls.secret -}}tls://{{- end -}}{{ join "," $nodes }}{{- if .Values.tls.secret -}}?ca=/etc/postroad/tls/ca.crt{{- end -}}
{{- end -}}

{{- define "postroad.store" -}}
{{- $tls := .Values.etcd.tlsSecret -}}
{{- if $tls -}}etcd+tls://{{- else -}}etcd://{{- end -}}
{{ join "," .Values.etcd.endpoints }}{{ .Values.etcd.path }}
{{- if $tls -}}?ca=/etc/postroad/etcd/ca.crt&certificate=/etc/postroad/etcd/tls.crt&key=/etc/postroad/etcd/tls.key{{- end -}}
{{- end -}}

{{- /* What holds for nodes and gateways alike. */ -}}
{{- define "postroad.environment" -}}
- name: POSTROAD_LOGGING_FORMAT
  value: json
{{- if .Values.tls.secret }}
- name: POSTROAD_TLS_CERTIFICATE
  value: /etc/postroad/tls/tls.crt
- name: POSTROAD_TLS_KEY
  value: /etc/postroad/tls/tls.key
- name: POSTROAD_TLS_CA
  value: /etc/postroad/tls/ca.crt
{{- end }}
{{- if .Values.security.enabled }}
- name: POSTROAD_SECURITY_ENABLED
  value: "true"
- name: POSTROAD_SECURITY_SUPER_USERS
  value: {{ .Values.security.superUsers | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "postroad.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "postroad.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Values that don't go together are refused before anything is installed. */ -}}
{{- define "postroad.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.etcd.endpoints) -}}
{{- fail "several nodes need an etcd: set etcd.endpoints, or replicas=1" -}}
{{- end -}}
{{- if gt (int .Values.topicReplicas) (int .Values.replicas) -}}
{{- fail "topicReplicas can't be more than replicas" -}}
{{- end -}}
{{- if and .Values.security.enabled (not (and .Values.tls.secret .Values.security.masterKeySecret)) -}}
{{- fail "security.enabled needs tls.secret and security.masterKeySecret" -}}
{{- end -}}
{{- if and (not .Values.security.enabled) (not .Values.insecure) -}}
{{- fail "whoever reaches the pods could read and write everything: set security.enabled, or insecure=true" -}}
{{- end -}}
{{- end -}}
