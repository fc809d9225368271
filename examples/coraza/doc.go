// Package coraza shows OWASP Coraza's plugin, which its authors wrote for TinyGo, built
// with official Go: the module is in plugin, the test is behind the build tag coraza
// because compiling 24 MB of wasm takes a gateway half a minute.
package coraza
