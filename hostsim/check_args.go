package hostsim

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// sameArgs compares a host call's arguments with the recorded ones. What the module itself writes into a header that the
// recording hides cannot be compared.
func (m *checkVM) sameArgs(recorded, args []byte) bool {
	if bytes.Equal(recorded, args) {
		return true
	}
	hidden := redaction{names: m.c.hidden}
	x, err1 := decodeArgs(recorded)
	y, err2 := decodeArgs(args)
	return err1 == nil && err2 == nil && reflect.DeepEqual(hidden.mask(x), hidden.mask(y))
}

func decodeArgs(text []byte) (args map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // 64 bits
	err = d.Decode(&args)
	return args, err
}

// mask takes the values of hidden headers out of a host call's arguments.
func (r *redaction) mask(args map[string]any) map[string]any {
	if len(r.names) == 0 {
		return args
	}
	if key, ok := args["key"].(string); ok && r.hides(key) {
		if _, ok := args["value"]; ok {
			args["value"] = nil
		}
	}
	for _, arg := range args {
		pairs, _ := arg.([]any)
		for _, p := range pairs {
			if pair, _ := p.([]any); len(pair) == 2 {
				if name, ok := pair[0].(string); ok && r.hides(name) {
					pair[1] = nil
				}
			}
		}
	}
	return args
}
