package suite

import (
	"fmt"
	"io"
	"os"
)

// MaxModule is the size in bytes above which a module is not read.
const MaxModule = 256 << 20

// ReadFile is os.ReadFile with a bound on the size in bytes, for paths that a user gives: a device such as /dev/zero has no
// end.
func ReadFile(path string, most int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > most:
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d MiB", most>>20)}
	}
	return data, nil
}
