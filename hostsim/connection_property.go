package hostsim

import (
	"bytes"
	"strings"
)

// SetProperty answers the plugin's proxy_get_property for path (see Path) on this connection, as Stream.SetProperty does
// on a stream. Nil takes the answer back.
func (c *Connection) SetProperty(path string, value []byte) {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	if path = wirePath(path); value == nil {
		delete(c.properties, path)
		return
	}
	if c.properties == nil {
		c.properties = map[string][]byte{}
	}
	c.properties[path] = value
}

// FilterState returns what the plugin stored by proxy_set_property under name, which is "wasm." and the plugin's path.
func (c *Connection) FilterState(name string) ([]byte, bool) {
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	v, ok := c.filterState[name]
	return v, ok
}

// property answers from what was set, by the caller or by the plugin itself.
func (c *Connection) property(path string) ([]byte, bool) {
	if v, ok := c.properties[path]; ok {
		return v, true
	}
	if name, ok := strings.CutPrefix(path, "filter_state\x00"); ok {
		v, ok := c.filterState[name]
		return v, ok
	}
	v, ok := c.filterState[filterStatePrefix+path]
	return v, ok && !strings.Contains(path, "\x00")
}

func (c *Connection) setFilterState(path string, value []byte) {
	if c.filterState == nil {
		c.filterState = map[string][]byte{}
	}
	c.filterState[filterStatePrefix+path] = bytes.Clone(value)
}
