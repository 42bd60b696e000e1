//go:build !amd64 || noasm

package machine

// sets says that there is no machine.
func sets() []set { return nil }
