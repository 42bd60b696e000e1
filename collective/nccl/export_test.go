package nccl

import "time"

// SetPatience is how long c's Close waits for the end of NCCL.
func SetPatience(c *Comm, d time.Duration) { c.patience = d }

// Forget has NCCL loaded again, which may be another version then.
func Forget() {
	loaded.Lock()
	defer loaded.Unlock()
	loaded.api = nil
}
