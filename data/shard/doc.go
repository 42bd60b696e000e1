// Package shard writes and reads data sets as files: safetensors inside
// seekable zstd, with an index. FORMAT.md beside this file is the
// specification.
//
// A data set is a directory with index.json and, for each split (train, val,
// test), a folder of shards. It is complete or absent: Writer fills a
// temporary directory next to the final one, writes index.json last and
// renames the whole.
//
// A Set and its Splits are immutable and may be used from any goroutine; they
// hold no open file. A Writer belongs to one goroutine.
package shard

import "ebtrain/data"

// Version of the format written here. A reader refuses another major version.
const (
	Major = 1
	Minor = 0
)

// Names of the tensors in a shard.
const (
	pixelsTensor = "images" // U8 or F32 (n, C, H, W)
	labelsTensor = "labels" // I64 (n)
	tokensTensor = "tokens" // I32 (all tokens), in the place of images where samples are sentences
	endsTensor   = "ends"   // U64 (n): where each sentence ends in tokens
)

// tensorsOf are the tensors of samples of s.
func tensorsOf(s data.Schema) []string {
	if s.Text != nil {
		return []string{tokensTensor, endsTensor, labelsTensor}
	}
	return []string{pixelsTensor, labelsTensor}
}

// Sizes of what is written; readers accept any.
const (
	blockBytes = 256 << 10 // raw bytes of a frame of pictures
	shardBytes = 48 << 20  // raw bytes of a shard
)

// maxSkipped is how many of the originals that were left out an index lists: it
// must stay short enough to be read, whatever the originals are.
const maxSkipped = 10_000

// Limits of what is read.
const (
	maxIndexBytes = 256 << 20
	maxBlockBytes = 1 << 30
)

// layoutFor picks the samples in a block and in a full shard.
func layoutFor(s data.Schema) (blockSamples, shardSamples int) {
	blockSamples = max(1, blockBytes/s.SampleBytes())
	return blockSamples, max(1, shardBytes/(s.SampleBytes()*blockSamples)) * blockSamples
}
