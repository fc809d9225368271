package hostsim

import "encoding/binary"

// Path joins the segments of a property path as they are on the wire, with a zero byte. Functions that take a path also
// accept one without zero bytes, in which every dot separates: "upstream.address" is Path("upstream", "address").
func Path(segments ...string) string { panic("todo") }

// PropertyInt encodes a number as Envoy answers integer properties, such as response.code: eight bytes, little endian.
func PropertyInt(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
