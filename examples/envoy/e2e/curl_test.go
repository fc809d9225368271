package e2e

func actAsCurl() bool { return false }
