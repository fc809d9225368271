package plugin

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
)

// sharedData is the memory that all workers of the gateway process share. A set
// whose cas is not the one that the value was read with fails with
// types.ErrorStatusCasMismatch.
type sharedData interface {
	// get returns the value, valid until the callback ends, and its cas. A key
	// that does not exist, or holds nothing, has no value and a cas that creates.
	get(key string) (value []byte, cas uint32, err error)
	set(key string, value []byte, cas uint32) error
	// forget gives back the memory of all values that get has returned in this
	// callback. It is for loops over many values that keep none.
	forget()
}

// createCAS creates a key that does not exist and fails on one that does. (0
// would overwrite whatever is there: envoyproxy/envoy, SharedData::set.)
const createCAS = 0xffffffff

// gatewayData is the gateway's shared data.
type gatewayData struct{}

func (*gatewayData) get(key string) ([]byte, uint32, error) {
	value, cas, err := abi.GetSharedData(key)
	if err == types.ErrorStatusNotFound {
		return nil, createCAS, nil
	}
	if cas == 0 {
		cas = createCAS
	}
	return value, cas, err
}

func (*gatewayData) set(key string, value []byte, cas uint32) error {
	return abi.SetSharedData(key, value, cas)
}

func (*gatewayData) forget() { abi.FreeHostMemory() }
