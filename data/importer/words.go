package importer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"ebtrain/data"
)

// Words says how a line becomes words, and which of them are kept.
type Words struct {
	Lower       bool // letters in lower case
	Punctuation bool // marks at the ends of words become words of their own
	MinCount    int  // words rarer in the training split are one token, <unk>
	Most        int  // so many words are kept at most, the most frequent; 0 keeps all
	MaxLength   int  // words of a line at most
	// Vocabulary are the words of another data set, which MinCount and Most then do
	// not choose; nil takes those of the training split.
	Vocabulary []string
}

// Validate says what is wrong.
func (w Words) Validate() error {
	switch {
	case w.MinCount < 1:
		return fmt.Errorf("--min-count is %d, expected 1 or more", w.MinCount)
	case w.Most < 0 || w.Most == 1 || w.Most > data.MaxWords-data.Reserved:
		return fmt.Errorf("--max-words is %d, expected 2 to %d, or 0 for all", w.Most, data.MaxWords-data.Reserved)
	case w.MaxLength < 1 || w.MaxLength > maxSentence:
		return fmt.Errorf("--max-length is %d, expected 1 to %d", w.MaxLength, maxSentence)
	}
	return nil
}

// maxSentence bounds --max-length: a sample has two tokens more, and at most 2¹⁴.
const maxSentence = 1<<14 - 2

// split is a line in words.
func (w Words) split(l line) ([]string, error) {
	if l.err != nil {
		return nil, l.err
	}
	text := l.text
	if w.Lower {
		text = strings.ToLower(text)
	}
	words := strings.Fields(text)
	if w.Punctuation {
		var all []string
		for _, f := range words {
			all = appendMarks(all, f)
		}
		words = all
	}
	if len(words) == 0 {
		return nil, errors.New("no words")
	}
	if len(words) > w.MaxLength {
		return nil, fmt.Errorf("%d words, expected at most %d (--max-length)", len(words), w.MaxLength)
	}
	for _, f := range words {
		if slices.Contains(data.ReservedWords()[:data.Unknown], f) {
			return nil, fmt.Errorf("the word %s stands for something else in a vocabulary", f)
		}
	}
	return words, nil
}

// appendMarks appends a word, and the marks before and after it as words of their
// own. What has no letter, digit or symbol is all marks; <unk> begins and ends with
// symbols, so it stays whole.
func appendMarks(all []string, word string) []string {
	runes := []rune(word)
	from, to := 0, len(runes)
	for from < to && unicode.IsPunct(runes[from]) {
		all = append(all, string(runes[from]))
		from++
	}
	for to > from && unicode.IsPunct(runes[to-1]) {
		to--
	}
	if from < to {
		all = append(all, string(runes[from:to]))
	}
	for _, r := range runes[to:] {
		all = append(all, string(r))
	}
	return all
}

// vocabulary chooses words by how often the training split has them: the most
// frequent first, and of those as frequent the first of the alphabet.
func (w Words) vocabulary(counts map[string]int) ([]string, error) {
	if w.Vocabulary != nil {
		return w.Vocabulary, nil
	}
	reserved := data.ReservedWords()
	delete(counts, reserved[data.Unknown])
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if c := counts[b] - counts[a]; c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	n, _ := slices.BinarySearchFunc(words, w.MinCount, func(s string, least int) int {
		if counts[s] >= least {
			return -1
		}
		return 1
	})
	if w.Most > 0 {
		n = min(n, w.Most)
	}
	if n < 2 {
		return nil, fmt.Errorf("a vocabulary of %d words, expected 2 at least: of %d different words in the training split so many are seen %d times; give more text, or a smaller --min-count", n, len(words), w.MinCount)
	}
	return append(reserved, words[:n]...), nil
}

// encode is a line's words as tokens, little-endian.
func encode(index map[string]int32, words []string) []byte {
	raw := appendToken(make([]byte, 0, 4*(len(words)+2)), data.Begin)
	for _, w := range words {
		t, known := index[w]
		if !known {
			t = data.Unknown
		}
		raw = appendToken(raw, t)
	}
	return appendToken(raw, data.End)
}
