package importer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mnistDir(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range []string{"train", "t10k"} {
		put(t, filepath.Join(dir, p+"-images-idx3-ubyte.gz"), gz(t, idxFile(idxPictures, n, 5, 4)))
		put(t, filepath.Join(dir, p+"-labels-idx1-ubyte"), idxFile(idxLabels, n)) // not gzipped
		if n > 0 {
			put(t, filepath.Join(dir, p+"-labels-idx1-ubyte"), append(idxFile(idxLabels, n)[:8], seq(n)...))
		}
	}
	return dir
}

// seq is 0 … n−1 as bytes.
func seq(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func TestMNIST(t *testing.T) {
	s, err := MNIST(t.Context(), mnistDir(t, 10), Geometry{})
	dir, x := imported(t, s, err, Options{})
	schema, b := load(t, dir, "test")
	if schema.C != 1 || schema.H != 5 || schema.W != 4 || len(schema.Classes) != 10 || x.Splits["train"].Samples != 10 {
		t.Errorf("schema %v, %d samples", schema, x.Splits["train"].Samples)
	}
	for i, l := range b.Labels {
		if l != int64(i) || !bytes.Equal(b.Values[20*i:20*i+20], bytes.Repeat([]byte{byte(i)}, 20)) {
			t.Errorf("sample %d: label %d, pixels %v", i, l, b.Values[20*i:20*i+20])
		}
	}
}

// Pictures of all splits are of one size, and none are without their labels.
func TestMNISTFiles(t *testing.T) {
	for _, c := range []struct {
		change func(dir string) error
		want   string
	}{
		{func(dir string) error { return os.Remove(filepath.Join(dir, "t10k-images-idx3-ubyte.gz")) }, ": has only one of t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, expected both"},
		{func(dir string) error { return os.Remove(filepath.Join(dir, "t10k-labels-idx1-ubyte")) }, ": has only one of t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, expected both"},
		{func(dir string) error {
			put(t, filepath.Join(dir, "t10k-images-idx3-ubyte.gz"), gz(t, idxFile(idxPictures, 7, 6, 4)))
			return nil
		}, "pictures of 6×4, those before have 5×4"},
		{func(dir string) error {
			put(t, filepath.Join(dir, "t10k-images-idx3-ubyte.gz"), gz(t, idxFile(idxPictures, 7, 5, 3)))
			return nil
		}, "pictures of 5×3, those before have 5×4"},
	} {
		dir := mnistDir(t, 7)
		if err := c.change(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := MNIST(t.Context(), dir, Geometry{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A file of gzip that was changed is found at its end, and it is said what to do.
func TestMNISTDamaged(t *testing.T) {
	dir := mnistDir(t, 7)
	b := gz(t, append(idxFile(idxLabels, 7)[:8], seq(7)...))
	b[len(b)-6] ^= 1 // of the checksum
	path := put(t, filepath.Join(dir, "t10k-labels-idx1-ubyte.gz"), b)
	if _, err := MNIST(t.Context(), dir, Geometry{}); err == nil || !strings.HasPrefix(err.Error(), path+": offset 15: ") || !strings.HasSuffix(err.Error(), ": damaged, so copy or download it again") {
		t.Errorf("error %v", err)
	}
}

// Pictures that their checksum does not fit, or that are more than the header says, are found
// when the last of them has been read.
func TestMNISTPicturesDamaged(t *testing.T) {
	changed := gz(t, idxFile(idxPictures, 7, 5, 4))
	changed[len(changed)-6] ^= 1 // of the checksum
	for want, b := range map[string][]byte{
		": offset 156: after the last record: ":                                changed,
		": offset 156: more bytes than the 7 records that the header promises": gz(t, append(idxFile(idxPictures, 7, 5, 4), 0)),
	} {
		dir := mnistDir(t, 7)
		path := put(t, filepath.Join(dir, "t10k-images-idx3-ubyte.gz"), b)
		s, err := MNIST(t.Context(), dir, Geometry{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out")}); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Labels are read whole, so that their file alone says nothing of how many there are.
func TestMNISTCounts(t *testing.T) {
	dir := mnistDir(t, 7)
	path := filepath.Join(dir, "t10k-labels-idx1-ubyte")
	for _, n := range []int{6, 8, 1 << 30} {
		put(t, path, binary.BigEndian.AppendUint32(idxFile(idxLabels, 0)[:4], uint32(n)))
		want := fmt.Sprintf("%s: %d labels, but %s has 7 pictures", path, n, filepath.Join(dir, "t10k-images-idx3-ubyte.gz"))
		if _, err := MNIST(t.Context(), dir, Geometry{}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
