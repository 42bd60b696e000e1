package importer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
)

// TextFiles are the originals of a data set of sentences.
type TextFiles struct {
	Src []string // for training, read one after another
	// Val and Test are files, or numbers of Src's last lines: those of val come before
	// those of test. "" or "0" for none.
	Val, Test string
	Limit     int64 // look at the first lines of each split only, for its words too; 0 means all
	Buckets   int   // lengths of batches at most
	// Progress, if not nil, is called after each line that is read before Run reads them: as
	// they are counted and, then, for their words; total is −1 if unknown.
	Progress func(phase string, done, total int64)
}

// progress says that so many lines are read.
func (f TextFiles) progress(phase string, done, total int64) {
	if f.Progress != nil {
		f.Progress(phase, done, total)
	}
}

// Validate says what is wrong, as far as no file says it.
func (f TextFiles) Validate() error {
	if f.Buckets < 1 || f.Buckets > data.MaxBuckets {
		return fmt.Errorf("--buckets is %d, expected 1 to %d", f.Buckets, data.MaxBuckets)
	}
	for _, p := range []struct{ name, what string }{{"val", f.Val}, {"test", f.Test}} {
		if n, err := strconv.Atoi(p.what); err == nil && n < 0 {
			return fmt.Errorf("--%s is %d, expected 0 lines or more, or a file", p.name, n)
		}
	}
	return nil
}

// part is a split: some lines of files.
type part struct {
	name        string
	files       []string
	first, last int // lines of all the files, from 0, last not included; −1 is the end
}

// Text opens files of sentences, one a line. The vocabulary is the training
// split's, or another one's.
func Text(ctx context.Context, f TextFiles, w Words) (*Set, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	parts, err := f.parts(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := w.survey(ctx, parts, f.progress)
	if err != nil {
		return nil, err
	}
	if len(seen.lengths) == 0 {
		return nil, w.firstProblem(ctx, parts)
	}
	words, err := w.vocabulary(seen.counts)
	if err != nil && seen.bad != nil { // a file that is no text has few words
		return nil, fmt.Errorf("%w; %w", err, seen.bad)
	}
	if err != nil {
		return nil, err
	}
	text := &data.Text{Words: words, Edges: edges(seen.lengths, seen.longest, f.Buckets)}
	s := &Set{
		Schema:        data.Schema{C: 1, H: 1, W: seen.longest, DType: safetensors.I32, Text: text},
		Preprocessing: w.preprocessing(),
		Notes:         []string{fmt.Sprintf("%d of the %d different words of the training split are in the vocabulary; batches are of %v tokens, begin and end included", known(words, seen.counts), len(seen.counts), text.Edges)},
	}
	index := make(map[string]int32, len(words))
	for i, word := range words {
		index[word] = int32(i)
	}
	for _, p := range parts {
		s.Splits = append(s.Splits, Split{Name: p.name, Count: p.count(), Items: p.items(w, index)})
	}
	return s, nil
}

// sentences are what the lines are found to have when they are read for the first time.
type sentences struct {
	counts  map[string]int // words of the training split
	lengths []int          // in tokens, ends included, of each of its sentences
	longest int            // of any split
	bad     error          // of the first line that is none
}

// survey reads all parts, and tells of each line.
func (w Words) survey(ctx context.Context, parts []part, progress func(phase string, done, total int64)) (sentences, error) {
	seen := sentences{counts: map[string]int{}}
	done, total := int64(0), int64(0)
	for _, p := range parts {
		total += p.count()
	}
	for _, p := range parts {
		for l, err := range p.lines(ctx) {
			if err != nil {
				return seen, err
			}
			done++
			progress("words", done, total)
			words, err := w.split(l)
			if err != nil { // said when it is read again, in its turn
				if seen.bad == nil {
					seen.bad = fmt.Errorf("%s: %w", l.name(), err)
				}
				continue
			}
			length := len(words) + 2
			seen.longest = max(seen.longest, length)
			if p.name != "train" {
				continue
			}
			seen.lengths = append(seen.lengths, length)
			for _, s := range words {
				seen.counts[s]++
			}
		}
	}
	return seen, nil
}

// firstProblem is why no line of the training split has words.
func (w Words) firstProblem(ctx context.Context, parts []part) error {
	for l, err := range parts[0].lines(ctx) {
		if err != nil {
			return err
		}
		if _, err := w.split(l); err != nil {
			return fmt.Errorf("no line of the training split is a sentence: %s: %w", l.name(), err)
		}
	}
	return fmt.Errorf("%s: empty, expected a sentence a line", parts[0].files[0])
}

// known is how many words of the training split are in the vocabulary.
func known(words []string, counts map[string]int) (n int) {
	for _, w := range words {
		if counts[w] > 0 {
			n++
		}
	}
	return n
}

func (w Words) preprocessing() shard.Preprocessing {
	p := shard.Preprocessing{
		"importer": "text", "words": "split by spaces", "lower case": strconv.FormatBool(w.Lower),
		"split punctuation": strconv.FormatBool(w.Punctuation), "max length": strconv.Itoa(w.MaxLength),
	}
	if w.Vocabulary != nil {
		p["vocabulary"] = "given"
		return p
	}
	p["min count"] = strconv.Itoa(w.MinCount)
	if w.Most > 0 {
		p["max words"] = strconv.Itoa(w.Most)
	}
	return p
}

// parts are the splits, train first.
func (f TextFiles) parts(ctx context.Context) ([]part, error) {
	if len(f.Src) == 0 {
		return nil, errors.New("no file of sentences for training")
	}
	total, err := f.countLines(ctx, "count", f.Src)
	if err != nil {
		return nil, err
	}
	if total == 0 {
		return nil, fmt.Errorf("%s: empty, expected a sentence a line", strings.Join(f.Src, ", "))
	}
	test, err := f.part(ctx, "test", f.Test, total)
	if err != nil {
		return nil, err
	}
	end := total
	if test.first >= 0 && test.files == nil {
		end = test.first
	}
	val, err := f.part(ctx, "val", f.Val, end)
	if err != nil {
		return nil, err
	}
	train := part{"train", f.Src, 0, end}
	if val.first >= 0 && val.files == nil {
		train.last = val.first
	}
	if train.last < 1 {
		return nil, fmt.Errorf("%s: %d lines, of which --val and --test take all: leave some for training", strings.Join(f.Src, ", "), total)
	}
	parts := []part{train}
	for _, p := range []part{val, test} {
		if p.first < 0 {
			continue
		}
		if p.files == nil {
			p.files = f.Src
		}
		parts = append(parts, p)
	}
	for i, p := range parts {
		if f.Limit > 0 && p.count() > f.Limit {
			parts[i].last = p.first + int(f.Limit)
		}
	}
	return parts, nil
}

// part is a split besides train, which takes the last lines before end where it is
// a number of them; first is −1 where there is none.
func (f TextFiles) part(ctx context.Context, name, what string, end int) (part, error) {
	if what == "" || what == "0" {
		return part{first: -1}, nil
	}
	n, err := strconv.Atoi(what)
	if err != nil {
		files := []string{what}
		n, err := f.countLines(ctx, "count "+name, files)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: empty, expected a sentence a line", what)
		}
		if err != nil {
			err = fmt.Errorf("the split %s, a file or a number of lines: %w", name, err)
		}
		return part{name, files, 0, n}, err
	}
	if n > end {
		return part{}, fmt.Errorf("--%s is %d of the last lines of %s, expected 0 to %d, or a file", name, n, strings.Join(f.Src, ", "), end)
	}
	return part{name, nil, end - n, end}, nil
}

func (f TextFiles) countLines(ctx context.Context, phase string, files []string) (n int, err error) {
	for _, err := range lines(ctx, files) {
		if err != nil {
			return n, err
		}
		n++
		f.progress(phase, int64(n), -1)
	}
	return n, nil
}

func (p part) count() int64 { return int64(p.last - p.first) }

// lines are those of the split.
func (p part) lines(ctx context.Context) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		n := 0
		for l, err := range lines(ctx, p.files) {
			if n >= p.last && err == nil {
				return
			}
			if (n >= p.first || err != nil) && !yield(l, err) {
				return
			}
			n++
		}
	}
}

// items are the lines as sentences. A line takes no memory to speak of: it has
// maxLineBytes at most, and few are in work.
func (p part) items(w Words, index map[string]int32) originals {
	return reading(func(ctx context.Context, _ *budget, give func(Item) error) error {
		for l, err := range p.lines(ctx) {
			if err != nil {
				return err
			}
			values := func(context.Context, *budget) ([]byte, error) {
				words, err := w.split(l)
				if err != nil {
					return nil, err
				}
				return encode(index, words), nil
			}
			if err := give(Item{Name: l.name(), Label: -1, Values: values}); err != nil {
				return err
			}
		}
		return nil
	})
}

func appendToken(raw []byte, t int32) []byte { return binary.LittleEndian.AppendUint32(raw, uint32(t)) }
