package staged

import "time"

// SetPatience is how long c's Close waits for the GPU.
func SetPatience(c *Comm, d time.Duration) { c.patience = d }
