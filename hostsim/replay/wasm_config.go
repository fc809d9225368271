package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrRouterConfig is wrapped by errors about what a router is made from.
var ErrRouterConfig = errors.New("replay: invalid router configuration")

const (
	sessionHeader = "x-session-id"
	targetHeader  = "x-gateway-destination-endpoint"
	secretHeader  = "x-pinwheel-secret"
	secret        = "replay"
	releasePath   = "/finish_session"
	adminPath     = "/pinwheel"
	etcdCluster   = "etcd"
)

// pluginConfig is base, a JSON object or nothing, with what a replay decides in the place of what stands there: the replicas
// (and no pools or discovery), the policy if not empty, how a session is named, how the choice comes back, where sessions
// are released and replicas drained, which cluster an agreement asks, and that decisions are logged.
func pluginConfig(base []byte, policy string, members []Member) ([]byte, error) {
	top, err := object(base, "the plugin's configuration")
	if err != nil {
		return nil, err
	}
	delete(top, "pools")
	delete(top, "discovery")
	list := []any{}
	for _, m := range members {
		list = append(list, map[string]any{"address": m.Address, "weight": max(m.Weight, 1)})
	}
	set(top, "replicas", list)
	if policy != "" {
		set(top, "policy", policy)
	}
	set(top, "release", map[string]any{"path": releasePath})
	set(top, "admin", map[string]any{"path": adminPath, "secret_header": secretHeader, "secret": secret})
	set(top, "decision_log", map[string]any{"enabled": true, "level": "info"})
	session, err := object(top["session"], "session")
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"preset", "body", "scope_headers"} {
		delete(session, key)
	}
	set(session, "headers", []string{sessionHeader})
	set(top, "session", session)
	if top["agreement"] != nil {
		agreement, err := object(top["agreement"], "agreement")
		if err != nil {
			return nil, err
		}
		set(agreement, "cluster", etcdCluster)
		set(top, "agreement", agreement)
	}
	target, err := object(top["target"], "target")
	if err != nil {
		return nil, err
	}
	set(target, "header", targetHeader)
	set(target, "encoding", "plain")
	set(top, "target", target)
	return json.Marshal(top)
}

func object(text []byte, what string) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(text)) == 0 {
		return fields, nil
	}
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%w: %s is not a JSON object", ErrRouterConfig, what)
	}
	return fields, nil
}

// set gives a field a value of ours, which always has a JSON form.
func set(fields map[string]json.RawMessage, key string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fields[key] = text
}
