package nccl

import "time"

// SetPatience is how long c's Close waits for the end of NCCL.
func SetPatience(c *Comm, d time.Duration) { c.patience = d }

// SetTimeout is how long what c has enqueued may take from now on.
func SetTimeout(c *Comm, d time.Duration) { c.options.Timeout = d }

// Forget has NCCL loaded again, which may be another version then.
func Forget() {
	loaded.Lock()
	defer loaded.Unlock()
	loaded.api = nil
}

// Mustering is o for ranks that wait so long beyond InitTimeout for what the others report.
func Mustering(o Options, d time.Duration) Options {
	o.muster = d
	return o
}
