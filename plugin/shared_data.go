package plugin

// sharedData is abi.SharedData, or what a test has in its place. A Set whose cas is not
// the one that the value was read with fails with types.ErrorStatusCasMismatch.
type sharedData interface {
	// Get returns the value, valid until the callback ends, and its cas. A key
	// that does not exist, or holds nothing, has no value, and abi.CreateCAS.
	Get(key string) (value []byte, cas uint32, err error)
	Set(key string, value []byte, cas uint32) error
	// Forget gives back the memory of all values that Get has returned in this
	// callback. It is for loops over many values that keep none.
	Forget()
}
