package shard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
	"ebtrain/data/safetensors"
)

// IndexName is the file that makes a directory a data set.
const IndexName = "index.json"

const formatName = "ebtrain-shards"

// zeroSum stands in the place of an index's checksum while it is computed.
const zeroSum = "xxh64:0000000000000000"

// Index is index.json. Unknown fields are ignored.
type Index struct {
	Format   string  `json:"format"`
	Checksum string  `json:"checksum"` // XXH64 of the file with this value zeroed
	Version  Version `json:"version"`
	// RequiredFeatures are those a reader must know to read the shards.
	RequiredFeatures []string         `json:"required_features"`
	Schema           Schema           `json:"schema"`
	BlockSamples     int              `json:"block_samples"`
	Preprocessing    Preprocessing    `json:"preprocessing"`
	Splits           map[string]Split `json:"splits"`
	Skipped          []Skipped        `json:"skipped,omitempty"`
	SkippedMore      uint64           `json:"skipped_more,omitempty"` // left out, but not listed
}

// LeftOut is how many originals the importer left out.
func (x *Index) LeftOut() uint64 { return uint64(len(x.Skipped)) + x.SkippedMore }

// Version of the format.
type Version struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

// Schema is data.Schema as JSON.
type Schema struct {
	DType   safetensors.DType `json:"dtype"`
	Shape   [3]int            `json:"shape"` // C, H, W
	Classes []string          `json:"classes"`
	Text    *Text             `json:"text,omitempty"`    // of sentences
	Columns []data.Column     `json:"columns,omitempty"` // of rows of a table
}

// Preprocessing says what was done to the originals, by key. It is part of the
// digest: pictures cropped otherwise are another data set.
type Preprocessing map[string]string

// Split is one split in the index.
type Split struct {
	Samples uint64  `json:"samples"`
	Words   uint64  `json:"words,omitempty"`   // of sentences: in all of them
	Unknown uint64  `json:"unknown,omitempty"` // of those, not in the vocabulary
	Shards  []Entry `json:"shards"`
}

// Entry is one shard in the index.
type Entry struct {
	File     string `json:"file"` // relative to the index, with slashes
	Samples  uint64 `json:"samples"`
	Bytes    uint64 `json:"bytes"`     // of the file
	RawBytes uint64 `json:"raw_bytes"` // of the safetensors file inside
	XXH64    string `json:"xxh64"`     // of the file, 16 hex digits
	// SHA256 of each uncompressed tensor, 64 hex digits.
	SHA256 map[string]string `json:"sha256"`
}

// Skipped is a picture that the importer left out, and why.
type Skipped struct {
	Split string `json:"split"`
	Name  string `json:"name"`
	Why   string `json:"why"`
}

// knownFeatures are the required features that this reader has. The name
// "left-predictor" is reserved in FORMAT.md.
var knownFeatures = []string{featureText}

// Data is what samples are, without the words of a text, which lie in a file.
func (x *Index) Data() data.Schema { return x.Schema.data() }

// data is the schema without the words of a text, which lie in a file.
func (s Schema) data() data.Schema {
	d := data.Schema{C: s.Shape[0], H: s.Shape[1], W: s.Shape[2], DType: s.DType, Classes: s.Classes, Columns: s.Columns}
	if s.Text != nil {
		d.Text = &data.Text{Edges: s.Text.Edges}
	}
	return d
}

// encode is the index as a file, checksum set.
func (x *Index) encode() ([]byte, error) {
	x.Checksum = zeroSum
	b, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	x.Checksum = sum64(b)
	return bytes.Replace(b, []byte(zeroSum), []byte(x.Checksum), 1), nil
}

func sum64(b []byte) string { return fmt.Sprintf("xxh64:%016x", xxhash.Sum64(b)) }

// decodeIndex parses and checks index.json. Errors do not name the file.
func decodeIndex(b []byte) (*Index, error) {
	if err := checkReadable(b); err != nil {
		return nil, err
	}
	var x Index
	if err := unmarshal(b, &x); err != nil {
		return nil, err
	}
	if len(x.Checksum) != len(zeroSum) {
		return nil, fmt.Errorf("checksum is %q, expected the form %s", x.Checksum, zeroSum)
	}
	if got := sum64(bytes.Replace(b, []byte(x.Checksum), []byte(zeroSum), 1)); got != x.Checksum {
		return nil, fmt.Errorf("checksum is %s, but the content has %s: the index was damaged or edited; import again", x.Checksum, got)
	}
	return &x, x.check()
}

// checkReadable looks only at what every version has: format, version and
// required features.
func checkReadable(b []byte) error {
	var x struct {
		Format           string   `json:"format"`
		Version          Version  `json:"version"`
		RequiredFeatures []string `json:"required_features"`
	}
	if err := unmarshal(b, &x); err != nil {
		return err
	}
	if x.Format != formatName {
		return fmt.Errorf("format is %q, expected %q", x.Format, formatName)
	}
	if x.Version.Major != Major {
		return fmt.Errorf("format version %d.%d, but this program reads version %d only: import again or use a matching program", x.Version.Major, x.Version.Minor, Major)
	}
	for _, f := range x.RequiredFeatures {
		if !slices.Contains(knownFeatures, f) {
			return fmt.Errorf("needs the feature %q, which this program does not have", f)
		}
	}
	return nil
}

func unmarshal(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("offset %d: not whole JSON (%w): copy or import the data set again", s.Offset, err)
	}
	if u, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("offset %d: field %s is a %s, expected %v", u.Offset, u.Field, u.Value, u.Type)
	}
	return err
}

// check tests everything that later arithmetic relies on.
func (x *Index) check() error {
	s := x.Schema.data()
	if err := s.Validate(); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if x.Schema.Text != nil {
		if err := x.Schema.Text.check(); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	if x.BlockSamples < 1 || x.BlockSamples > maxBlockBytes/s.SampleBytes() {
		return fmt.Errorf("block_samples is %d, expected 1 to %d", x.BlockSamples, maxBlockBytes/s.SampleBytes())
	}
	if len(x.Splits) == 0 {
		return errors.New("no splits")
	}
	for _, name := range slices.Sorted(maps.Keys(x.Splits)) {
		if err := x.Splits[name].check(s, x.BlockSamples); err != nil {
			return fmt.Errorf("split %s: %w", name, err)
		}
	}
	return nil
}

// check tests a split of blocks of so many samples.
func (p Split) check(s data.Schema, block int) error {
	var sum uint64
	for i, e := range p.Shards {
		if err := e.check(i, s, block); err != nil {
			return err
		}
		sum += e.Samples
	}
	if sum != p.Samples || sum == 0 {
		return fmt.Errorf("%d samples, but its shards have %d", p.Samples, sum)
	}
	return nil
}

// check tests shard i, of blocks of so many samples.
func (e Entry) check(i int, s data.Schema, block int) error {
	if e.Samples < 1 || e.Samples > 1<<32 {
		return fmt.Errorf("shard %d has %d samples, expected at least 1", i, e.Samples)
	}
	if !filepath.IsLocal(filepath.FromSlash(e.File)) || strings.Contains(e.File, `\`) {
		return fmt.Errorf("shard %d: %q is not a path inside the data set", i, e.File)
	}
	if e.Bytes > 1<<62 || e.RawBytes > 1<<62 {
		return fmt.Errorf("shard %d (%s): %d bytes, %d raw, is out of range", i, e.File, e.Bytes, e.RawBytes)
	}
	// Each block has two frames, each with 12 bytes in the seek table, so a
	// file bounds the memory that its description can ask for.
	if blocks := (e.Samples + uint64(block) - 1) / uint64(block); e.RawBytes < e.Samples*leastBytes(s) || e.Bytes < 24*blocks {
		return fmt.Errorf("shard %d (%s): %d bytes, %d raw, cannot hold %d samples", i, e.File, e.Bytes, e.RawBytes, e.Samples)
	}
	if len(e.XXH64) != 16 || !isHex(e.XXH64) {
		return fmt.Errorf("shard %d (%s): xxh64 is %q, expected 16 hex digits", i, e.File, e.XXH64)
	}
	for _, t := range tensorsOf(s) {
		if h := e.SHA256[t]; len(h) != 64 || !isHex(h) {
			return fmt.Errorf("shard %d (%s): sha256 of %s is %q, expected 64 hex digits", i, e.File, t, h)
		}
	}
	return nil
}

// leastBytes is the size of the smallest sample.
func leastBytes(s data.Schema) uint64 {
	if s.Text != nil {
		return 4 * data.MinTokens
	}
	return uint64(s.SampleBytes())
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && s == strings.ToLower(s)
}

// digest names the content of a split; see data.Source.
func (x *Index) digest(split string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %d\n%s %v %q\n%d\n", formatName, x.Version.Major, x.Schema.DType, x.Schema.Shape, x.Schema.Classes, x.BlockSamples)
	for _, k := range slices.Sorted(maps.Keys(x.Preprocessing)) {
		_, _ = fmt.Fprintf(h, "%q=%q\n", k, x.Preprocessing[k])
	}
	if t := x.Schema.Text; t != nil {
		_, _ = fmt.Fprintf(h, "words %s, lengths %v\n", t.SHA256, t.Edges)
	}
	for _, c := range x.Schema.Columns {
		_, _ = fmt.Fprintf(h, "column %q mean %v sd %v\n", c.Name, c.Mean, c.SD)
	}
	for _, e := range x.Splits[split].Shards {
		_, _ = fmt.Fprint(h, e.Samples)
		for _, name := range tensorsOf(x.Schema.data()) {
			_, _ = fmt.Fprintf(h, " %s", e.SHA256[name])
		}
		_, _ = fmt.Fprintln(h)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// readIndex reads dir's index. Errors name the file and say what to do.
func readIndex(dir string) (*Index, error) {
	path := filepath.Join(dir, IndexName)
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such data set; make it with mkshards", dir)
	case err != nil:
		return nil, err
	case !st.IsDir():
		return nil, fmt.Errorf("%s: a file, expected the directory of a data set; make one with mkshards", dir)
	}
	f, err := atomicfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		above := filepath.Dir(filepath.Clean(dir))
		if is, err := isIndex(filepath.Join(above, IndexName)); err == nil && is { // a split's folder was named
			return nil, fmt.Errorf("%s: missing: %s is a part of the data set %s, so name that", path, dir, above)
		}
		return nil, fmt.Errorf("%s: missing, so %s is not a whole data set; make one with mkshards", path, dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxIndexBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxIndexBytes {
		return nil, fmt.Errorf("%s: over the limit of %d bytes for an index", path, maxIndexBytes)
	}
	x, err := decodeIndex(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}
