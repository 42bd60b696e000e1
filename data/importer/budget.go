package importer

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/semaphore"
)

// MemoryLimit bounds the bytes of all pictures in work together: of archives'
// entries that wait for a worker, decoded, scaled, and waiting to be written.
const MemoryLimit = 1 << 30

// maxEntry limits one picture as it is stored, in bytes.
const maxEntry = 256 << 20

// budget is memory that workers share. Who takes some has all that it will
// need, or is the only one that takes in two parts: otherwise two could wait
// for each other for ever.
type budget struct {
	limit int64
	sem   *semaphore.Weighted
}

func newBudget(limit int64) *budget { return &budget{limit, semaphore.NewWeighted(limit)} }

// take waits until n bytes are free. More than the limit would never be.
func (b *budget) take(ctx context.Context, n int64) error {
	if n > b.limit {
		return fmt.Errorf("a picture needs %s of memory, expected at most %s", byteText(float64(n)), byteText(float64(b.limit)))
	}
	if b.sem.Acquire(ctx, n) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// give gives back n bytes.
func (b *budget) give(n int64) { b.sem.Release(n) }

// byteText is a number of bytes for messages. What a header claims may be more than any
// integer holds: 8 EiB say as much.
func byteText(n float64) string { return humanize.IBytes(uint64(min(n, 1<<63))) }
