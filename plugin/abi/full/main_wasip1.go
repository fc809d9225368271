package full

import _ "unsafe" // for go:linkname

//go:linkname mainMain main.main
func mainMain()

var mainRan bool

// runMain calls the plugin's func main, once, before the first callback. A module of
// -buildmode=c-shared has no other caller of it, and plugins for TinyGo set up there.
func runMain() {
	if !mainRan {
		mainRan = true
		mainMain()
	}
}
