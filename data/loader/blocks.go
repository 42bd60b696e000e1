package loader

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"ebtrain/data"
)

// blocks are the decoded blocks of the pools in use. Their memory, and that
// of reading more of them on all cores, is used again and again.
type blocks struct {
	src     data.Source
	decoded []*data.Block // by number, nil if not in memory
	held    []int         // numbers of those in memory
	spare   []*data.Block
	kept    []bool // by number, while keep runs

	missing []int // to be read, then with each:
	dst     []*data.Block
	errs    []error
	taken   atomic.Int64 // of missing, by the readers
	readers sync.WaitGroup
	reader  func() // read, bound once
}

func newBlocks(src data.Source, n int) *blocks {
	b := &blocks{src: src, decoded: make([]*data.Block, n), kept: make([]bool, n)}
	b.reader = func() { defer b.readers.Done(); b.read() }
	return b
}

// keep forgets all blocks but those listed.
func (b *blocks) keep(list []int) {
	for _, i := range list {
		b.kept[i] = true
	}
	held := b.held[:0]
	for _, i := range b.held {
		if b.kept[i] {
			held = append(held, i)
			continue
		}
		b.spare = append(b.spare, b.decoded[i])
		b.decoded[i] = nil
	}
	b.held = held
	for _, i := range list {
		b.kept[i] = false
	}
}

// want asks for block i.
func (b *blocks) want(i int) {
	if b.decoded[i] == nil && !slices.Contains(b.missing, i) {
		b.missing = append(b.missing, i)
	}
}

// load reads what was asked for and is missing. failed judges the blocks that
// could not be read, in the order of their numbers; its first error ends load.
func (b *blocks) load(failed func(block int, err error) error) error {
	if len(b.missing) == 0 {
		return nil
	}
	slices.Sort(b.missing) // so that of several errors the same one is reported
	b.dst, b.errs = b.dst[:0], b.errs[:0]
	for range b.missing {
		var block *data.Block
		if n := len(b.spare); n > 0 {
			block, b.spare = b.spare[n-1], b.spare[:n-1]
		} else {
			block = &data.Block{}
		}
		b.dst, b.errs = append(b.dst, block), append(b.errs, nil)
	}
	b.readAll()
	missing := b.missing
	b.missing = b.missing[:0]
	for k, i := range missing {
		if b.errs[k] == nil {
			b.decoded[i] = b.dst[k]
			b.held = append(b.held, i)
			continue
		}
		b.spare = append(b.spare, b.dst[k])
		if err := failed(i, b.errs[k]); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads the missing blocks on all cores.
func (b *blocks) readAll() {
	b.taken.Store(0)
	for range min(runtime.GOMAXPROCS(0), len(b.missing)) - 1 {
		b.readers.Add(1)
		go b.reader()
	}
	b.read()
	b.readers.Wait()
}

// read reads missing blocks until all are taken.
func (b *blocks) read() {
	for {
		k := int(b.taken.Add(1)) - 1
		if k >= len(b.missing) {
			return
		}
		b.errs[k] = b.src.ReadBlock(b.missing[k], b.dst[k])
	}
}
