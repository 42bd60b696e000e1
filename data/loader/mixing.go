package loader

import (
	"fmt"

	"ebtrain/data"
)

// poolSamples is how many samples are mixed with each other at least, if memory
// is not limited: a batch of 64 is then as good as drawn from the whole set.
const poolSamples = 16384

// poolBlocks is how many blocks a pool has at least: about 64 MiB of pictures.
const poolBlocks = 256

// version is a way to order the blocks of an epoch.
type version uint8

const (
	sequential   version = iota // by number
	withinShards                // version 1: shards permuted, blocks permuted within their shard
	acrossShards                // version 2: all blocks permuted
)

// mixing is an order of samples: how blocks are permuted, and how many of them
// make a pool whose samples are permuted. Its name is kept in State: a change
// of what a name means is a new name.
type mixing struct {
	version version
	blocks  int // in a pool
}

// inOrder is the order without shuffling: every pool is a block.
var inOrder = mixing{sequential, 1}

// legacy is the order of checkpoints made before version 2. A data set sorted by
// class has few classes in a pool of it.
var legacy = mixing{withinShards, 256}

func (m mixing) String() string {
	switch m.version {
	case sequential:
		return "sequential-v1"
	case withinShards:
		return fmt.Sprintf("window%d-v1", m.blocks)
	}
	return fmt.Sprintf("pool%d-v2", m.blocks)
}

// poolsHeld is how many pools are in memory where a batch lies across their border.
const poolsHeld = 2

// LeastShuffleMemory is the least Config.ShuffleMemory that samples of src are mixed in, in
// bytes: with it each pool is a block.
func LeastShuffleMemory(src data.Source) int64 {
	return poolsHeld * int64(src.Layout().BlockSamples) * int64(src.Schema().SampleBytes()+8)
}

// mixingOf is the order that a loader of src begins with.
func mixingOf(src data.Source, c Config) (mixing, error) {
	if !c.Shuffle {
		return inOrder, nil
	}
	layout := src.Layout()
	if c.ShuffleMemory == 0 {
		return mixing{acrossShards, max(poolBlocks, (poolSamples+layout.BlockSamples-1)/layout.BlockSamples)}, nil
	}
	least := LeastShuffleMemory(src)
	n := c.ShuffleMemory / least
	if n < 1 {
		return mixing{}, fmt.Errorf("%d bytes of memory for shuffling hold no %d blocks: give at least %d, or 0 for pools of %d samples",
			c.ShuffleMemory, poolsHeld, least, poolSamples)
	}
	return mixing{acrossShards, int(min(n, int64(1)<<31-1))}, nil
}

// named finds the order that a state names, for a loader that shuffles or not.
func named(name string, shuffle bool) (mixing, bool) {
	if !shuffle {
		return inOrder, name == inOrder.String()
	}
	if name == legacy.String() {
		return legacy, true
	}
	m := mixing{version: acrossShards}
	if _, err := fmt.Sscanf(name, "pool%d-v2", &m.blocks); err != nil {
		return m, false
	}
	return m, m.blocks > 0 && m.String() == name
}
