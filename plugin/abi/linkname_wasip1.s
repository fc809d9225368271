// Lets the package declare functions without a body: they are the SDK's, named
// by go:linkname.
