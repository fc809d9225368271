package envoytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrBootstrap reports a configuration file that lacks what is to be replaced.
var ErrBootstrap = errors.New("envoytest: unexpected bootstrap")

// Bootstrap is the text of an Envoy configuration, edited line by line so that
// what runs is the user's file with its comments, not a retelling. The edits
// return changed copies and report ErrBootstrap when the text does not hold what
// they replace.
type Bootstrap string

// LoadBootstrap reads a configuration file.
func LoadBootstrap(name string) (Bootstrap, error) {
	b, err := os.ReadFile(name)
	return Bootstrap(b), err
}

// Port replaces the one `port_value: from` by `port_value: to`.
func (b Bootstrap) Port(from, to int) (Bootstrap, error) {
	return b.swap("port_value: "+strconv.Itoa(from)+"}", "port_value: "+strconv.Itoa(to)+"}")
}

// Endpoints makes n endpoints, on ports from first on, of those that begin there:
// the one on port first is repeated, the others of the file are replaced.
func (b Bootstrap) Endpoints(first, n int) (Bootstrap, error) {
	lines := strings.SplitAfter(string(b), "\n")
	begin, end := -1, 0
	for i, l := range lines {
		if strings.Contains(l, "- {endpoint: ") {
			if begin < 0 {
				begin = i
			}
			end = i + 1
		}
	}
	if begin < 0 {
		return "", fmt.Errorf("%w: no endpoints", ErrBootstrap)
	}
	line, all := Bootstrap(strings.TrimSuffix(lines[begin], "\n")+"\n"), ""
	for i := range n {
		next, err := line.Port(first, first+i)
		if err != nil {
			return "", err
		}
		all += string(next)
	}
	return Bootstrap(join(lines[:begin]) + all + join(lines[end:])), nil
}

// Before makes examples/envoy/envoy.yaml one that listens on a port of its own, has
// its admin interface on any that is free, and stands before these replicas, each
// 127.0.0.1:PORT: in its cluster and in the plugin's list.
func (b Bootstrap) Before(replicas []string, port int) (Bootstrap, error) {
	b, err := b.Endpoints(8001, len(replicas))
	if err != nil {
		return "", err
	}
	moves := [][2]int{{10000, port}, {9901, 0}}
	for i, r := range replicas {
		own, ok := strings.CutPrefix(r, "127.0.0.1:")
		to, err := strconv.Atoi(own)
		if err != nil || !ok {
			return "", fmt.Errorf("%w: replica %q is not 127.0.0.1:PORT", ErrBootstrap, r)
		}
		moves = append(moves, [2]int{8001 + i, to})
	}
	for _, m := range moves {
		if b, err = b.Port(m[0], m[1]); err != nil {
			return "", err
		}
	}
	return b.Plugin(func(c map[string]any) { c["replicas"] = replicas })
}

// Wasm makes the plugin load from the file name.
func (b Bootstrap) Wasm(name string) (Bootstrap, error) {
	return b.swap("filename: dist/pinwheel.wasm}", "filename: "+strconv.Quote(name)+"}")
}

// ConnectTimeout replaces the second that the cluster waits for a connection.
func (b Bootstrap) ConnectTimeout(d time.Duration) (Bootstrap, error) {
	return b.swap("connect_timeout: 1s\n", fmt.Sprintf("connect_timeout: %gs\n", d.Seconds()))
}

// ShowBodies has Envoy show the plugin the bodies of requests that it holds.
func (b Bootstrap) ShowBodies() (Bootstrap, error) {
	return b.swap("# allow_on_headers_stop_iteration: true", "allow_on_headers_stop_iteration: true")
}

// BufferLimit bounds what the listener llm buffers of a connection, in bytes.
func (b Bootstrap) BufferLimit(bytes int) (Bootstrap, error) {
	const listener = "  - name: llm\n    address:"
	return b.swap(listener, fmt.Sprintf("  - name: llm\n    per_connection_buffer_limit_bytes: %d\n    address:", bytes))
}

// DirectResponse adds a route in front of all others on which Envoy itself
// answers 200 with the text. HTTP filters see such requests too.
func (b Bootstrap) DirectResponse(path, text string) (Bootstrap, error) {
	const routes = "              routes:\n"
	return b.swap(routes, routes+fmt.Sprintf(
		"              - {match: {path: %q}, direct_response: {status: 200, body: {inline_string: %q}}}\n", path, text))
}

// PluginOff adds a route in front of all others, to the cluster vllm, on which
// Pinwheel is switched off.
func (b Bootstrap) PluginOff(path string) (Bootstrap, error) {
	const routes = "              routes:\n"
	return b.swap(routes, routes+fmt.Sprintf("              - {match: {path: %q}, route: {cluster: vllm}, "+
		"typed_per_filter_config: {pinwheel: {\"@type\": type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true}}}\n", path))
}

// FileEndpoints makes the static cluster take its endpoints from a file (EDS),
// which Envoy reads again whenever that file is replaced by a rename.
func (b Bootstrap) FileEndpoints(path string) (Bootstrap, error) {
	b, err := b.Without("load_assignment:")
	if err != nil {
		return "", err
	}
	return b.swap("    type: STATIC\n", "    type: EDS\n"+
		"    eds_cluster_config: {eds_config: {resource_api_version: V3, path_config_source: {path: "+strconv.Quote(path)+"}}}\n")
}

// swap replaces a text that must occur exactly once.
func (b Bootstrap) swap(from, to string) (Bootstrap, error) {
	if n := strings.Count(string(b), from); n != 1 {
		return "", fmt.Errorf("%w: %d times %q, want once", ErrBootstrap, n, from)
	}
	return Bootstrap(strings.Replace(string(b), from, to, 1)), nil
}

// Plugin edits Pinwheel's own configuration, the JSON text under `value: |`.
func (b Bootstrap) Plugin(edit func(map[string]any)) (Bootstrap, error) {
	lines := strings.SplitAfter(string(b), "\n")
	key, end, err := block(lines, "value: |")
	if err != nil {
		return "", err
	}
	config := map[string]any{}
	if err := json.Unmarshal([]byte(strings.Join(lines[key+1:end], "")), &config); err != nil {
		return "", fmt.Errorf("%w: plugin configuration: %w", ErrBootstrap, err)
	}
	edit(config)
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	value := strings.Repeat(" ", indent(lines[key])+2) + string(text) + "\n"
	return Bootstrap(join(lines[:key+1]) + value + join(lines[end:])), nil
}

// Respell makes the plugin's configuration another text with the same meaning for
// every n: it appends n blanks. Gateways remember by its text what a
// configuration did.
func (b Bootstrap) Respell(n int) (Bootstrap, error) {
	lines := strings.SplitAfter(string(b), "\n")
	key, end, err := block(lines, "value: |")
	if err != nil {
		return "", err
	}
	for end > key+1 && strings.TrimSpace(lines[end-1]) == "" {
		end--
	}
	last := strings.TrimSuffix(lines[end-1], "\n") + strings.Repeat(" ", n) + "\n"
	return Bootstrap(join(lines[:end-1]) + last + join(lines[end:])), nil
}

// Without drops the one block that begins with the line `key`.
func (b Bootstrap) Without(key string) (Bootstrap, error) {
	lines := strings.SplitAfter(string(b), "\n")
	begin, end, err := block(lines, key)
	if err != nil {
		return "", err
	}
	return Bootstrap(join(lines[:begin]) + join(lines[end:])), nil
}

// WithoutFilter drops the HTTP filter of that name from the listener.
func (b Bootstrap) WithoutFilter(name string) (Bootstrap, error) {
	return b.Without("- name: " + name)
}

// SplitListeners moves the listeners out of the bootstrap into a resource file
// for file-based LDS, which Envoy reads from the given path and reads again
// whenever that file is replaced by a rename.
func (b Bootstrap) SplitListeners(path string) (bootstrap Bootstrap, resources string, err error) {
	lines := strings.SplitAfter(string(b), "\n")
	begin, end, err := block(lines, "listeners:")
	if err != nil {
		return "", "", err
	}
	const listener = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typed, err := Bootstrap("resources:\n"+join(lines[begin+1:end])).swap("\n  - name: llm\n", "\n  - \"@type\": "+listener+"\n    name: llm\n")
	if err != nil {
		return "", "", err
	}
	dynamic := "node: {id: pinwheel, cluster: pinwheel}\n" +
		"dynamic_resources: {lds_config: {resource_api_version: V3, path_config_source: {path: " + strconv.Quote(path) + "}}}\n"
	return Bootstrap(dynamic + join(lines[:begin]) + join(lines[end:])), string(typed), nil
}

// block finds the line that consists of text and the end of what belongs to it:
// deeper lines, and list items on its own level if it is a key.
func block(lines []string, text string) (begin, end int, err error) {
	begin = -1
	for i, l := range lines {
		if strings.TrimSpace(l) == text {
			if begin >= 0 {
				return 0, 0, fmt.Errorf("%w: %q twice", ErrBootstrap, text)
			}
			begin = i
		}
	}
	if begin < 0 {
		return 0, 0, fmt.Errorf("%w: no line %q", ErrBootstrap, text)
	}
	key := !strings.HasPrefix(text, "- ")
	depth := indent(lines[begin])
	for end = begin + 1; end < len(lines); end++ {
		l := lines[end]
		item := key && indent(l) == depth && strings.HasPrefix(strings.TrimSpace(l), "- ")
		if strings.TrimSpace(l) != "" && indent(l) <= depth && !item {
			break
		}
	}
	return begin, end, nil
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func join(lines []string) string { return strings.Join(lines, "") }
