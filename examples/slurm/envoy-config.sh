#!/usr/bin/env bash
# Writes the configuration of an Envoy with Pinwheel in front of the vLLM replicas of a Slurm job, from
# examples/envoy/original-dst.yaml, into a folder:
#
#   envoy-config.sh FOLDER [HOST[:PORT]...]        the job's hosts if none is named; http:// before one is passed over
#
#   FOLDER/envoy.yaml   to start Envoy with
#   FOLDER/lds.yaml     the listener and, in it, the one list of replicas. Envoy reads it again when it is replaced: run this
#                       again with other hosts, on Envoy's machine (a change on a network file system is not seen elsewhere)
#
# A HOST without PORT has RANKS (1) replicas on ports from BACKEND_PORT (8100) on. Envoy listens on PORT (8000) of all
# interfaces and, for its admin interface, on ADMIN_PORT (9901) of loopback. WASM (dist/pinwheel.wasm) is the plugin. With
# SECRET there is /pinwheel/status, for whoever sends it.
set -euo pipefail

fail() { echo "envoy-config.sh: $1" >&2; exit 1; }
number() { # number NAME VALUE MAX
  [[ $2 =~ ^[1-9][0-9]{0,4}$ && $2 -le $3 ]] || fail "$1 is ${2@Q}; want a number from 1 to $3"
}
text() { # text NAME VALUE: what stands as it is in sed's commands, YAML and JSON
  [[ $2 != *[[:cntrl:]\"\\\&\|]* ]] || fail "$1 has one of \", \\, &, | or a control character; want one without" # it may be secret
}
folder=${1:?usage: envoy-config.sh FOLDER [HOST[:PORT]...]}
shift
if [ $# -eq 0 ]; then
  hosts=$(scontrol show hostnames "${SLURM_JOB_NODELIST:?no HOST is named, and this is no Slurm job}")
  mapfile -t hosts <<<"$hosts"
  set -- "${hosts[@]}"
fi
wasm=$(realpath -e "${WASM:-dist/pinwheel.wasm}" 2>/dev/null) || fail "no plugin at ${WASM:-dist/pinwheel.wasm}; run \`make wasm\`, or name it in WASM"
folder=$(realpath -m "$folder")
text FOLDER "$folder"
text WASM "$wasm"
text SECRET "${SECRET:-}"
number PORT "${PORT:=8000}" 65535
[ "${ADMIN_PORT:=9901}" = 0 ] || number ADMIN_PORT "$ADMIN_PORT" 65535
number RANKS "${RANKS:=1}" 1000
template=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../envoy/original-dst.yaml

replicas=
for at in "$@"; do
  at=${at#http://}
  host=${at%%:*} first=${BACKEND_PORT:-8100} ranks=$RANKS what=BACKEND_PORT
  [ "$at" = "$host" ] || first=${at#*:} ranks=1 what="the port of ${at@Q} (HOST or HOST:PORT)"
  number "$what" "$first" $((65536 - ranks))
  # Pinwheel takes addresses and no names: nothing resolves a name between its choice and Envoy's connection.
  ip=$(getent ahostsv4 "$host" | awk 'NR == 1 { print $1 }') || true
  [[ $ip =~ ^[0-9.]+$ ]] || fail "host ${host@Q} has no IPv4 address; want a name that \`getent ahostsv4\` knows"
  for ((port = first; port < first + ranks; port++)); do
    replicas+="${replicas:+, }\"$ip:$port\""
  done
done
admin=
[ -z "${SECRET:-}" ] || admin=" \"admin\": {\"secret\": \"$SECRET\"},"

edits=(
  -e "s|127.0.0.1, port_value: 10000}|0.0.0.0, port_value: $PORT}|"
  -e "s|port_value: 9901}|port_value: $ADMIN_PORT}|"
  -e "s|filename: dist/pinwheel.wasm|filename: \"$wasm\"|"
  -e "s|\"replicas\": \[.*\],|\"replicas\": [$replicas],$admin|"
)
mkdir -p "$folder"
{
  echo "node: {id: pinwheel, cluster: pinwheel}"
  echo "dynamic_resources: {lds_config: {resource_api_version: V3, path_config_source: {path: \"$folder/lds.yaml\"}}}"
  sed "${edits[@]}" -e '/^  listeners:$/,/^  clusters:$/ { /^  clusters:$/! d }' "$template"
} > "$folder/envoy.yaml"
{
  echo "resources:"
  sed -n '/^  listeners:$/,/^  clusters:$/ { /^  listeners:$/ d; /^  clusters:$/ d; p }' "$template" |
    sed "${edits[@]}" -e 's|^  - name: llm$|  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener\n    name: llm|'
} > "$folder/lds.yaml.new"
mv "$folder/lds.yaml.new" "$folder/lds.yaml" # a rename: Envoy must not read half a file
