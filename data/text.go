package data

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Tokens that every vocabulary begins with.
const (
	Padding  = 0 // after the end of a sentence, where others of the batch go on
	Begin    = 1 // of a sentence
	End      = 2 // of a sentence
	Unknown  = 3 // a word that is not in the vocabulary
	Reserved = 4 // number of these
)

// ReservedWords are how those tokens are written.
func ReservedWords() []string { return []string{"<pad>", "<s>", "</s>", "<unk>"} }

// MaxBuckets is the number of lengths that batches may have at most: a program is
// compiled for each.
const MaxBuckets = 4

// MaxWords bounds a vocabulary.
const MaxWords = 1 << 24

// MinTokens is the length of the shortest sample: Begin, a word, End.
const MinTokens = 3

// Text says that samples are sentences: 1×1×W of I32 tokens, of which a sample has
// its own number, MinTokens to W: Begin, its words, End. It is not changed once
// made.
type Text struct {
	// Words are how tokens are written: token i is Words[i]. The first are
	// ReservedWords.
	Words []string
	// Edges are the lengths of batches, rising; the last is W. A sample is in the
	// first bucket that it fits into.
	Edges []int
}

// Joined are the words with spaces between, which no word has.
func (t *Text) Joined() string { return strings.Join(t.Words, " ") }

// VocabularyDigest names the words and their order.
func (t *Text) VocabularyDigest() string { return WordsDigest(t.Joined()) }

// WordsDigest is the digest of the words that joined holds, spaces between.
func WordsDigest(joined string) string {
	sum := sha256.Sum256([]byte(strings.ReplaceAll(joined, " ", "\n") + "\n")) // as the file has them
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Bucket is the number of the bucket that samples of length tokens are in.
func (t *Text) Bucket(length int) int {
	for i, edge := range t.Edges {
		if length <= edge {
			return i
		}
	}
	return len(t.Edges) - 1
}

// Sentence is a sample in words: those between Begin and End.
func Sentence(words []string, tokens []int32) string {
	var b strings.Builder
	for _, t := range tokens {
		if t == End {
			break
		}
		if t == Begin || t == Padding {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[t])
	}
	return b.String()
}

// CheckWords reports words that are no vocabulary.
func CheckWords(words []string) error {
	if len(words) < Reserved+2 || len(words) > MaxWords {
		return fmt.Errorf("a vocabulary of %d words besides %d reserved ones, expected 2 to %d", max(len(words)-Reserved, 0), Reserved, MaxWords-Reserved)
	}
	for i, w := range ReservedWords() {
		if words[i] != w {
			return fmt.Errorf("word %d of the vocabulary is %q, expected %s", i, words[i], w)
		}
	}
	seen := make(map[string]int, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \n\r\t") {
			return fmt.Errorf("word %d of the vocabulary is %q, expected a word without spaces", i, w)
		}
		if j, twice := seen[w]; twice {
			return fmt.Errorf("words %d and %d of the vocabulary are both %q", j, i, w)
		}
		seen[w] = i
	}
	return nil
}

// validate reports what does not suit sentences of at most w tokens. The words are
// CheckWords' matter.
func (t *Text) validate(s Schema) error {
	if s.C != 1 || s.H != 1 || s.W < MinTokens {
		return fmt.Errorf("sentences of %d×%d×%d tokens, expected 1×1×%d or more", s.C, s.H, s.W, MinTokens)
	}
	if n := len(t.Edges); n < 1 || n > MaxBuckets || t.Edges[n-1] != s.W {
		return fmt.Errorf("buckets of lengths %v, expected 1 to %d that end with %d", t.Edges, MaxBuckets, s.W)
	}
	before := MinTokens - 1
	for _, e := range t.Edges {
		if e <= before {
			return fmt.Errorf("buckets of lengths %v, expected numbers that rise from %d at least", t.Edges, MinTokens)
		}
		before = e
	}
	return nil
}

// CheckTokens reports a sample that the schema of a text does not have.
func (s Schema) CheckTokens(tokens []int32) error {
	n := len(tokens)
	switch {
	case n < MinTokens || n > s.W:
		return fmt.Errorf("a sentence of %d tokens, expected %d to %d", n, MinTokens, s.W)
	case tokens[0] != Begin || tokens[n-1] != End:
		return errors.New("a sentence without its begin or its end")
	}
	for _, t := range tokens[1 : n-1] {
		if t < Unknown || int(t) >= len(s.Text.Words) {
			return fmt.Errorf("token %d within a sentence, expected %d to %d", t, Unknown, len(s.Text.Words)-1)
		}
	}
	return nil
}
