package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
	"ebtrain/data/safetensors"
)

// vocabularyName is the file of a data set of sentences that has its words.
const vocabularyName = "vocabulary.txt"

// featureText is the required feature of data sets of sentences.
const featureText = "text"

// maxVocabularyBytes bounds the file of words.
const maxVocabularyBytes = 1 << 30

// Text is data.Text in the index.
type Text struct {
	Vocabulary string `json:"vocabulary"` // file, relative to the index: a word a line
	Words      int    `json:"words"`      // in it
	SHA256     string `json:"sha256"`     // of it, as data.Text.VocabularyDigest
	Edges      []int  `json:"edges"`      // lengths of batches
}

// textIndex is how the index describes t; nil for nil.
func textIndex(t *data.Text) *Text {
	if t == nil {
		return nil
	}
	return &Text{Vocabulary: vocabularyName, Words: len(t.Words), SHA256: t.VocabularyDigest(), Edges: t.Edges}
}

// check tests what the index says before the words are read.
func (t *Text) check() error {
	switch {
	case !filepath.IsLocal(filepath.FromSlash(t.Vocabulary)) || strings.Contains(t.Vocabulary, `\`):
		return fmt.Errorf("vocabulary %q is not a path inside the data set", t.Vocabulary)
	case t.Words < data.Reserved+2 || t.Words > data.MaxWords:
		return fmt.Errorf("a vocabulary of %d words, expected %d to %d", t.Words, data.Reserved+2, data.MaxWords)
	case len(t.SHA256) != len("sha256:")+64 || !strings.HasPrefix(t.SHA256, "sha256:") || !isHex(t.SHA256[len("sha256:"):]):
		return fmt.Errorf("sha256 of the vocabulary is %q, expected 64 hex digits after sha256:", t.SHA256)
	}
	return nil
}

// words reads the vocabulary of the data set at dir.
func (t *Text) words(dir string) ([]string, error) {
	path := filepath.Join(dir, filepath.FromSlash(t.Vocabulary))
	words, err := ReadVocabulary(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: missing, so the words of %s are lost; import again", path, dir)
	}
	if err != nil {
		return nil, err
	}
	if got := (&data.Text{Words: words}).VocabularyDigest(); got != t.SHA256 || len(words) != t.Words {
		return nil, fmt.Errorf("%s: %d words of digest %s, the index says %d of %s: it was damaged or edited; import again", path, len(words), got, t.Words, t.SHA256)
	}
	return words, nil
}

// ReadVocabulary reads the file of words of a data set.
func ReadVocabulary(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxVocabularyBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxVocabularyBytes {
		return nil, fmt.Errorf("%s: over the limit of %d bytes for a vocabulary", path, maxVocabularyBytes)
	}
	words := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if err := data.CheckWords(words); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return words, nil
}

// writeVocabulary writes the words into the folder of a data set.
func writeVocabulary(dir string, t *data.Text) error {
	if t == nil {
		return nil
	}
	return atomicfile.WriteBytes(filepath.Join(dir, vocabularyName), []byte(strings.Join(t.Words, "\n")+"\n"))
}

// addTokens appends a sentence to the buffer.
func (b *buffer) addTokens(s data.Schema, raw []byte) error {
	if len(raw)%4 != 0 {
		return fmt.Errorf("%d bytes are no tokens", len(raw))
	}
	b.tokens = b.tokens[:0]
	for at := 0; at < len(raw); at += 4 {
		b.tokens = append(b.tokens, int32(binary.LittleEndian.Uint32(raw[at:])))
	}
	if err := s.CheckTokens(b.tokens); err != nil {
		return err
	}
	b.words += uint64(len(b.tokens) - 2)
	for _, t := range b.tokens {
		if t == data.Unknown {
			b.unknown++
		}
	}
	b.values = append(b.values, raw...)
	b.ends = binary.LittleEndian.AppendUint64(b.ends, uint64(len(b.values)/4))
	return nil
}

// cut is where the first samples end in a tensor, in bytes.
func (b *buffer) cut(name string, raw []byte, samples int) int {
	if name != tokensTensor {
		return len(raw) / b.n * samples
	}
	return 4 * int(binary.LittleEndian.Uint64(b.ends[8*(samples-1):]))
}

// checkTokens matches the frames of the tokens to the tensor: whole tokens, all of
// them.
func checkTokens(info safetensors.Info, sizes []uint64) error {
	var sum uint64
	for i, size := range sizes {
		if size%4 != 0 {
			return fmt.Errorf("block %d of %s has %d bytes, which are no tokens", i, info.Name, size)
		}
		sum += size
	}
	if len(info.Shape) != 1 || info.DType != safetensors.I32 || sum != uint64(info.Bytes()) {
		return fmt.Errorf("tensor %s is %s%v in blocks of %d bytes, expected I32 of one axis in as many", info.Name, info.DType, info.Shape, sum)
	}
	return nil
}

// ends reads where the sentences of a block end. raw counts from the begin of the
// shard, dst from that of the block, which has bytes of tokens.
func (r *Reader) ends(raw []byte, bytes int, dst []int64) error {
	all := int64(bytes / 4)
	if len(raw) != 8*len(dst) || len(dst) == 0 {
		return fmt.Errorf("%d bytes of %s for %d samples", len(raw), endsTensor, len(dst))
	}
	first := int64(binary.LittleEndian.Uint64(raw[len(raw)-8:])) - all
	before := int64(0)
	for j := range dst {
		dst[j] = int64(binary.LittleEndian.Uint64(raw[8*j:])) - first
		if n := dst[j] - before; n < data.MinTokens || n > int64(r.schema.W) {
			return fmt.Errorf("sample %d of the frame has %d tokens, expected %d to %d", j, n, data.MinTokens, r.schema.W)
		}
		before = dst[j]
	}
	return nil
}

// tokens checks the sentences of a block.
func (r *Reader) tokens(b *data.Block, mem *scratch) error {
	for j := range b.Ends {
		mem.tokens = b.Tokens(j, mem.tokens[:0])
		if err := r.schema.CheckTokens(mem.tokens); err != nil {
			return fmt.Errorf("sample %d of the frame: %w", j, err)
		}
	}
	return nil
}
