package shard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"

	"ebtrain/data"
)

// Verify reads every byte of the data set at dir and compares all sizes,
// checksums, hashes and labels with the index. It goes on after a bad shard,
// so its error joins one line for each. done, if not nil, is told the raw bytes
// checked so far and those in all.
func Verify(ctx context.Context, dir string, done func(bytes, total uint64)) error {
	x, err := readIndex(dir)
	if err != nil {
		return err
	}
	var total, at uint64
	for _, p := range x.Splits {
		for _, e := range p.Shards {
			total += e.RawBytes
		}
	}
	var bad []error
	for _, split := range slices.Sorted(maps.Keys(x.Splits)) {
		r, err := newReader(dir, split, x)
		if err != nil {
			return err
		}
		for i, e := range x.Splits[split].Shards {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := r.verifyShard(i, e); err != nil {
				bad = append(bad, err)
			}
			at += e.RawBytes
			if done != nil {
				done(at, total)
			}
		}
	}
	return errors.Join(bad...)
}

// verifyShard decodes every block first, because that names the bad frame, and
// then hashes the file.
func (r *Reader) verifyShard(shard int, e Entry) error {
	if err := checkSize(r.path(shard), e); err != nil {
		return err
	}
	r.spans = r.layout.SpansOf(shard) // of a file that is there: an index alone could ask for any memory
	sums := map[string]hash.Hash{}
	for _, t := range tensorsOf(r.schema) {
		sums[t] = sha256.New()
	}
	var b data.Block
	var tokens uint64 // of the blocks before
	for i := range r.spans {
		if err := r.ReadBlock(i, &b); err != nil {
			return err
		}
		sums[tensorsOf(r.schema)[0]].Write(b.Values)
		for _, end := range b.Ends {
			sums[endsTensor].Write(binary.LittleEndian.AppendUint64(nil, tokens+uint64(end)))
		}
		tokens += uint64(len(b.Values) / 4)
		for _, l := range b.Labels {
			sums[labelsTensor].Write(binary.LittleEndian.AppendUint64(nil, uint64(l)))
		}
	}
	for _, t := range tensorsOf(r.schema) {
		if got := hex.EncodeToString(sums[t].Sum(nil)); got != e.SHA256[t] {
			return fmt.Errorf("%s: sha256 of %s is %s, the index says %s; copy or import the data set again", r.path(shard), t, got, e.SHA256[t])
		}
	}
	return checkXXH64(r.path(shard), e.XXH64)
}

func checkXXH64(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := xxhash.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got := fmt.Sprintf("%016x", h.Sum64()); got != want {
		return fmt.Errorf("%s: checksum xxh64 %s, the index says %s; copy or import the data set again", path, got, want)
	}
	return nil
}
