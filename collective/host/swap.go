package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// MemExchange is the Exchange of each of size ranks that live in this process.
func MemExchange(size int) []Exchange {
	type round struct {
		blobs [][]byte
		left  int
		done  chan struct{}
	}
	var mu sync.Mutex
	rounds := map[string]*round{}
	exchanges := make([]Exchange, size)
	for rank := range exchanges {
		exchanges[rank] = func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
			mu.Lock()
			r := rounds[name]
			if r == nil {
				r = &round{blobs: make([][]byte, size), left: size, done: make(chan struct{})}
				rounds[name] = r
			}
			r.blobs[rank] = mine
			if r.left--; r.left == 0 {
				close(r.done)
			}
			mu.Unlock()
			select {
			case <-r.done:
				return r.blobs, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
	return exchanges
}

// DirExchange is an Exchange by files in dir, which all ranks see and which
// is empty at first. Each exchange leaves one small file for each rank.
func DirExchange(dir string, rank, size int) Exchange {
	return func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
		file := func(r int) string {
			return filepath.Join(dir, fmt.Sprintf("%s.%d", hex.EncodeToString([]byte(name)), r))
		}
		if err := os.WriteFile(file(rank)+".new", mine, 0o600); err != nil {
			return nil, err
		}
		if err := os.Rename(file(rank)+".new", file(rank)); err != nil {
			return nil, err
		}
		blobs := make([][]byte, size)
		for r := 0; r < size; {
			b, err := os.ReadFile(file(r))
			if err == nil {
				blobs[r] = b
				r++
				continue
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("waiting for rank %d: %w", r, context.Cause(ctx))
			case <-time.After(2 * time.Millisecond):
			}
		}
		return blobs, nil
	}
}

// NewLocal makes a group of n ranks that live in this process, on one host:
// for tests, and for programs that want ranks as goroutines.
func NewLocal(ctx context.Context, n int) ([]*Comm, error) {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	exchanges := MemExchange(n)
	comms := make([]*Comm, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			comms[r], errs[r] = New(ctx, Config{Rank: r, Size: n, Job: "local", Key: key, Exchange: exchanges[r]})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, c := range comms {
			if c != nil {
				_ = c.Close() // the group never was
			}
		}
		return nil, err
	}
	return comms, nil
}
