package gorgoniaddp

import "fmt"

// Config says how replicas are kept together. It must be the same on all ranks.
type Config struct {
	// BucketBytes is how much gradient memory travels in one all-reduce, in
	// bytes, at least 1. A learnable is never split: one that is larger has a
	// bucket of its own.
	BucketBytes int
	// VerifyInit makes New demand that the initial values agree on all ranks.
	// When false, New overwrites them with rank 0's.
	VerifyInit bool
}

// Defaults is buckets of 25 MB, and initial values from rank 0.
func Defaults() Config { return Config{BucketBytes: 25_000_000} }

// Validate says what is wrong with c, if anything.
func (c Config) Validate() error {
	if c.BucketBytes < 1 {
		return fmt.Errorf("want BucketBytes >= 1, got %d", c.BucketBytes)
	}
	return nil
}
