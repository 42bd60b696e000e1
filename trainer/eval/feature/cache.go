package feature

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"

	"ebtrain/collective"
	"ebtrain/data/atomicfile"
	"ebtrain/data/safetensors"
	"ebtrain/trainer/eval/quality"
)

// Cache keeps features of data in files, each named for the digest of the data, of
// which of them, of the network, and of how the device rounds (Extractor.Digits). Files
// are whole or absent; one that is damaged is made again.
type Cache struct {
	Dir string      // "" keeps nothing
	Say func(error) // is told of what is damaged, and of what cannot be kept
}

// ErrNotKept means that features could not be written, as others will not be.
var ErrNotKept = errors.New("they are not kept for the next time")

// edition is of what networks make of pictures, and of the files. It is raised when that
// changes: what older programs have kept is not taken then.
const edition = 2

const (
	cachedTensor = "features"
	cachedKey    = "of"
	cachedSum    = "sha256" // of the tensor's bytes, which the format has no checksum for
)

// Features are those of n pictures, which data names, that were kept by a device of the same
// digits, or what compute gives. Of several ranks all must have kept them, else all compute,
// which they do together, and those keep them that had none: other hosts have other disks, or
// are to keep nothing. Where one cannot, it says so, and nothing is lost.
func (c Cache) Features(ctx context.Context, comm collective.Comm, n int, net Net, data, digits string, compute func() (quality.Matrix, error)) (quality.Matrix, error) {
	key := digest(edition, data, n, net.Digest, digits)
	file := filepath.Join(c.Dir, key+".safetensors")
	m, err := c.read(file, key, n)
	if err != nil && !absent(err) {
		c.Say(fmt.Errorf("what was kept is damaged, and computed again: %w", err))
	}
	had := err == nil
	kept, err := allHave(ctx, comm, had)
	if err != nil || kept {
		return m, err
	}
	if m, err = compute(); err != nil || had || c.Dir == "" {
		return m, err
	}
	if err := c.keep(file, key, m); err != nil {
		c.Say(fmt.Errorf("%w: %w", ErrNotKept, err))
	}
	return m, nil
}

// read reads features from a file. Where nothing is kept there is none.
func (c Cache) read(file, key string, n int) (quality.Matrix, error) {
	if c.Dir == "" {
		return quality.Matrix{}, fs.ErrNotExist
	}
	return readFeatures(file, key, n)
}

// absent says whether reading failed because nothing is there, as in a folder that may not
// be looked into: whether it takes files is seen when some are kept.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}

// keep writes features into a file.
func (c Cache) keep(file, key string, m quality.Matrix) error {
	if err := atomicfile.MakeDir(c.Dir); err != nil {
		return err
	}
	t := safetensors.Float64s(cachedTensor, []int64{int64(m.N), int64(m.D)}, m.X)
	return atomicfile.Write(file, func(w io.Writer) error {
		return safetensors.Write(w, []safetensors.Tensor{t}, map[string]string{cachedKey: key, cachedSum: sumOf(t.Data)})
	})
}

// allHave says whether all ranks have something.
func allHave(ctx context.Context, comm collective.Comm, has bool) (bool, error) {
	if comm == nil {
		return has, nil
	}
	all := []int32{0}
	if has {
		all[0] = 1
	}
	err := collective.Do(ctx, comm, collective.Request{Kind: collective.AllReduce, Op: collective.Min, Vec: collective.VecOf(all), Label: "kept features"})
	return all[0] == 1, err
}

// readFeatures reads n rows from a file that is of the key.
func readFeatures(file, key string, n int) (m quality.Matrix, err error) {
	err = safetensors.ReadFile(file, func(f *safetensors.File) error {
		info, ok := f.Info(cachedTensor)
		if !ok || f.Metadata()[cachedKey] != key || info.DType != safetensors.F64 || len(info.Shape) != 2 || info.Shape[0] != int64(n) {
			return errors.New("it holds other features than its name says")
		}
		raw, err := f.Bytes(cachedTensor)
		if err != nil {
			return err
		}
		if got, want := sumOf(raw), f.Metadata()[cachedSum]; got != want {
			return fmt.Errorf("SHA-256 of its features is %s, expected %s", got, want)
		}
		m = quality.NewMatrix(n, int(info.Shape[1]))
		for i := range m.X {
			m.X[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
			if v := m.X[i]; math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("it holds %v among its features", v)
			}
		}
		return nil
	})
	return m, err
}

// sumOf is the SHA-256 of b in hex digits.
func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
