package hostsim

// Signature is a function's parameter and result types, such as "i32", "i64".
type Signature struct {
	Params  []string `json:"params"`
	Results []string `json:"results"`
}

// Import is one function that a module needs from its host.
type Import struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	Signature
}

// Export is one function that a module offers to its host.
type Export struct {
	Name string `json:"name"`
	Signature
	// Callback is true for a proxy-wasm callback, start function or allocator that a host would call.
	Callback bool `json:"callback"`
}

// Verdict says whether a profile's gateway would load a module.
type Verdict struct {
	Profile string `json:"profile"`
	Loads   bool   `json:"loads"`
	// Missing names what stands in the way, one entry per import or export, in words.
	Missing []string `json:"missing,omitempty"`
}

// Report is what Inspect finds in a module.
type Report struct {
	// Size is the binary's size in bytes.
	Size int `json:"size"`
	// ABI is the version in the marker export, such as "0.2.1", or "".
	ABI     string   `json:"abi"`
	Imports []Import `json:"imports"`
	Exports []Export `json:"exports"`
	// MemoryMin and MemoryMax are the declared sizes in bytes; MemoryMax is 0 when the module declares none.
	MemoryMin uint64    `json:"memory_min"`
	MemoryMax uint64    `json:"memory_max,omitempty"`
	Verdicts  []Verdict `json:"verdicts"`
}

// Inspect reads a module without running it. The error wraps ErrABI when it is not WebAssembly at all.
func Inspect(wasm []byte) (*Report, error) { panic("todo") }
