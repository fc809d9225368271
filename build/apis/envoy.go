package apis

import (
	"fmt"
	"regexp"
	"strconv"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// rules is what Envoy's generated types have: the constraints of their .proto files.
type rules interface{ ValidateAll() error }

var protoLine = regexp.MustCompile(`\(line (\d+):\d+\)`)

// decode reads a node into a message, strictly.
func (d Document) decode(n *yaml.Node, m proto.Message) []Problem {
	text, err := toJSON(n)
	if err == nil {
		err = protojson.Unmarshal(text, m)
	}
	if err == nil {
		return nil
	}
	p := d.problem(n, "%s: %v", m.ProtoReflect().Descriptor().FullName(), err)
	if at := protoLine.FindStringSubmatch(err.Error()); at != nil {
		p.Line, _ = strconv.Atoi(at[1])
	}
	return []Problem{p}
}

// obey holds a message to its constraints.
func (d Document) obey(n *yaml.Node, m proto.Message) []Problem {
	if r, ok := m.(rules); ok {
		if err := r.ValidateAll(); err != nil {
			return []Problem{d.problem(n, "%v", err)}
		}
	}
	return nil
}

// envoy reads a node as an Envoy message, holds it to its constraints, and likewise every typed configuration in it:
// those are opaque to the constraints of what holds them. A part is not complete, for it is merged into what Envoy has:
// neither its own constraints count, nor those of its typed_config.
func (d Document) envoy(n *yaml.Node, m proto.Message, part bool) []Problem {
	if problems := d.decode(n, m); problems != nil {
		return problems
	}
	var problems []Problem
	partly := (*yaml.Node)(nil)
	if part {
		partly = child(n, "typed_config")
	} else {
		problems = d.obey(n, m)
	}
	return append(problems, d.typed(n, partly)...)
}

// typed holds each typed configuration below a node to its constraints, and Pinwheel's configuration in it to
// Pinwheel's. All of them have been decoded once as part of the whole, so an unknown field cannot be here.
func (d Document) typed(n, partly *yaml.Node) (problems []Problem) {
	if value(n, "@type") != "" && n != partly {
		var any anypb.Any
		if problems := d.decode(n, &any); problems != nil {
			return problems
		}
		m, err := any.UnmarshalNew()
		if err != nil {
			return []Problem{d.problem(n, "%v", err)}
		}
		problems = append(d.obey(n, m), d.wasm(n, m)...)
	}
	for _, c := range n.Content {
		problems = append(problems, d.typed(c, partly)...)
	}
	return problems
}

// bootstrapKeys tell that a document is a configuration file for Envoy; "resources" that it is what a control plane, or
// a file, delivers to one that runs.
var bootstrapKeys = []string{"static_resources", "dynamic_resources", "admin"}

func (d Document) isBootstrap() bool {
	for _, key := range bootstrapKeys {
		if child(d.Root, key) != nil {
			return true
		}
	}
	return false
}

// parts are the messages that a block in a page may be a part of.
func parts() []proto.Message {
	return []proto.Message{&cluster.Cluster{}, &listener.Listener{}, &hcm.HttpConnectionManager{}, &bootstrap.Bootstrap{}}
}

// part accepts a block that is a part of one of the messages.
func (d Document) part() []Problem {
	tried := ""
	for _, m := range parts() {
		problems := d.envoy(d.Root, m, true)
		if problems == nil {
			return nil
		}
		tried += fmt.Sprintf("\n  as part of %s: %s", m.ProtoReflect().Descriptor().Name(), problems[0])
	}
	return []Problem{d.problem(d.Root, "a block that is part of nothing known:%s", tried)}
}

func (d Document) resources() []Problem {
	return d.envoy(d.Root, &discovery.DiscoveryResponse{}, false)
}
