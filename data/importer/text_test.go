package importer

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ebtrain/data"
	"ebtrain/data/shard"
)

func usualWords() Words { return Words{MinCount: 2, MaxLength: 200} }

// textFile is a file of lines.
func textFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// importedText is a data set of text, and its sentences by split.
func importedText(t *testing.T, f TextFiles, w Words, o Options) (*shard.Index, map[string][]string, error) {
	t.Helper()
	f.Buckets = max(f.Buckets, 1)
	set, err := Text(t.Context(), f, w)
	if err != nil {
		return nil, nil, err
	}
	o.Out = filepath.Join(t.TempDir(), "set")
	x, err := Run(t.Context(), set, o)
	if err != nil {
		return nil, nil, err
	}
	all := map[string][]string{}
	for name := range x.Splits {
		r, err := shard.Open(o.Out, name)
		if err != nil {
			t.Fatal(err)
		}
		var b data.Block
		for i, span := range r.Layout().Spans() {
			if err := r.ReadBlock(i, &b); err != nil {
				t.Fatal(err)
			}
			for j := range span.N {
				all[name] = append(all[name], data.Sentence(r.Schema().Text.Words, b.Tokens(j, nil)))
			}
		}
	}
	return x, all, nil
}

// Splits are the file's last lines, the vocabulary is the training split's, rare
// words are one token, and those of other splits that it lacks are counted.
func TestTextSplits(t *testing.T) {
	src := textFile(t, "a b a\nb  c\ta\r\nc rare\n a b\nnew a rare\nb never seen")
	x, got, err := importedText(t, TextFiles{Src: []string{src}, Val: "1", Test: "1"}, usualWords(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"train": {"a b a", "b c a", "c <unk>", "a b"}, "val": {"<unk> a <unk>"}, "test": {"b <unk> <unk>"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if p := x.Splits["test"]; p.Words != 3 || p.Unknown != 2 {
		t.Errorf("test has %d words, %d unknown", p.Words, p.Unknown)
	}
	if n := x.Schema.Text.Words; n != data.Reserved+3 {
		t.Errorf("a vocabulary of %d", n)
	}
}

// Splits may be files, and the vocabulary another data set's.
func TestTextFiles(t *testing.T) {
	f := TextFiles{Src: []string{textFile(t, "x x y\n"), textFile(t, "y z\n")}, Test: textFile(t, "z y\n")}
	w := usualWords()
	_, got, err := importedText(t, f, w, Options{})
	if want := map[string][]string{"train": {"x x y", "y <unk>"}, "test": {"<unk> y"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	w.Vocabulary = append(data.ReservedWords(), "z", "y")
	_, got, err = importedText(t, f, w, Options{})
	if want := map[string][]string{"train": {"<unk> <unk> y", "y z"}, "test": {"z y"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// The mark that begins some files, each of several, is no part of a word; elsewhere it
// is as it stands.
func TestByteOrderMark(t *testing.T) {
	src := []string{textFile(t, "\ufeffa b\na b\r\n"), textFile(t, "\ufeffa \ufeffb")}
	_, got, err := importedText(t, TextFiles{Src: src}, Words{MinCount: 1, MaxLength: 9}, Options{})
	if want := []string{"a b", "a b", "a \ufeffb"}; err != nil || !slices.Equal(got["train"], want) {
		t.Errorf("%q, %v; want %q", got["train"], err, want)
	}
}

// A compressed text is read as what it holds, whatever its name, and one that was cut short,
// or is damaged, is told so.
func TestCompressedText(t *testing.T) {
	const text = "a b\na b a\nb a\n"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"gzip": zipped.String(), "zstd": string(enc.EncodeAll([]byte(text), nil)), "plain": text} {
		_, got, err := importedText(t, TextFiles{Src: []string{textFile(t, content)}, Test: "1"}, usualWords(), Options{})
		if want := map[string][]string{"train": {"a b", "a b a"}, "test": {"b a"}}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
		if name == "plain" {
			continue
		}
		// The last bytes are a checksum, and in gzip the length.
		changed := []byte(content)
		changed[len(changed)-1] ^= 1
		bad := textFile(t, string(changed))
		if _, _, err := importedText(t, TextFiles{Src: []string{bad}}, usualWords(), Options{}); err == nil || !strings.HasPrefix(err.Error(), bad+": line ") || !strings.HasSuffix(err.Error(), ": damaged, so copy or download it again") {
			t.Errorf("%s, damaged: %v", name, err)
		}
	}
	cut := textFile(t, zipped.String()[:zipped.Len()-6])
	if _, _, err := importedText(t, TextFiles{Src: []string{cut}}, usualWords(), Options{}); err == nil || !strings.HasPrefix(err.Error(), cut+": line ") || !strings.HasSuffix(err.Error(), "the file ends too soon: it was cut short, so copy or download it again") {
		t.Errorf("cut short: %v", err)
	}
	if _, got, err := importedText(t, TextFiles{Src: []string{textFile(t, "a b")}}, Words{MinCount: 1, MaxLength: 9}, Options{}); err != nil || !slices.Equal(got["train"], []string{"a b"}) {
		t.Errorf("a text of three bytes: %q, %v", got, err)
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		w    Words
		line string
		want []string
	}{
		{Words{}, " A man's  dog. ", []string{"A", "man's", "dog."}},
		{Words{Lower: true}, "ÄB c", []string{"äb", "c"}},
		{Words{Punctuation: true}, `"Hi," he-man said ... <unk>`, []string{`"`, "Hi", ",", `"`, "he-man", "said", ".", ".", ".", "<unk>"}},
	} {
		tt.w.MaxLength = 20
		if got, err := tt.w.split(line{text: tt.line}); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, %v, want %q", tt.line, got, err, tt.want)
		}
	}
}

// What is no sentence is named by its line, in one sentence, or left out.
func TestBadLines(t *testing.T) {
	good := "a b\na b\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", good + "\na b\n", "line 3: no words; mend it, or leave such lines out with --on-bad skip"},
		{"blank", good + " \t\n", "line 3: no words"},
		{"long", good + strings.Repeat("a ", 10_000) + "\na b\n", "line 3: 10000 words, expected at most 200 (--max-length)"},
		{"endless", good + strings.Repeat("a ", 1<<20) + "\na b\n", "line 3: over the limit of 1048576 bytes"},
		{"not UTF-8", good + "a \xff b\na b\n", "line 3: byte 0xff at offset 2 of the line is not UTF-8"},
		{"no text", good + "a \x00 b\na b\n", "line 3: byte 0x00 at offset 2 of the line, as text in UTF-16 has and none in UTF-8"},
		{"a word too many", good + strings.Repeat("a ", 201) + "\n", "line 3: 201 words, expected at most 200 (--max-length)"},
		{"a byte too many", good + "a" + strings.Repeat(" ", maxLineBytes) + "\n", "line 3: over the limit of 1048576 bytes"},
		{"reserved", good + "a </s> b\n", "line 3: the word </s> stands for something else"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := textFile(t, tt.text)
			_, _, err := importedText(t, TextFiles{Src: []string{src}}, usualWords(), Options{})
			if err == nil || !strings.Contains(err.Error(), src+": "+tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, tt.want)
			}
			x, got, err := importedText(t, TextFiles{Src: []string{src}}, usualWords(), Options{SkipBad: true})
			n := strings.Count(tt.text, "\n") - 1
			if err != nil || len(x.Skipped) != 1 || len(got["train"]) != n || slices.ContainsFunc(got["train"], func(s string) bool { return s != "a b" }) {
				t.Errorf("left out: %v, %q, %v", x, got, err)
			}
		})
	}
}

// What is just within the limits is a sentence, and a character that stands for one that could
// not be read is one as it is.
func TestGoodLines(t *testing.T) {
	for name, line := range map[string]string{
		"as long as may be":  strings.Repeat("a ", 200),
		"as large as may be": "a" + strings.Repeat(" ", maxLineBytes-1),
		"replacement":        "a \ufffd",
	} {
		_, got, err := importedText(t, TextFiles{Src: []string{textFile(t, "a b\na b\n"+line+"\n")}}, Words{MinCount: 1, MaxLength: 200}, Options{})
		if want := strings.TrimSpace(line); err != nil || len(got["train"]) != 3 || got["train"][2] != want {
			t.Errorf("%s: %.40q, %v", name, got["train"], err)
		}
	}
}

// Words stand in the order of how often they are seen, then of the alphabet; the one that stands
// for unknown ones has its place already.
func TestVocabulary(t *testing.T) {
	counts := map[string]int{"c": 5, "a": 3, "d": 4, "b": 3, "<unk>": 9, "e": 1, "f": 2}
	got, err := Words{MinCount: 2}.vocabulary(counts)
	if want := append(data.ReservedWords(), "c", "d", "a", "b", "f"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	got, err = Words{MinCount: 1, Most: 2}.vocabulary(counts)
	if want := append(data.ReservedWords(), "c", "d"); err != nil || !slices.Equal(got, want) {
		t.Errorf("of two: %q, %v, want %q", got, err, want)
	}
}

func TestTextValidate(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: true, data.MaxBuckets: true, data.MaxBuckets + 1: false} {
		if err := (TextFiles{Buckets: n}).Validate(); (err == nil) != want {
			t.Errorf("%d buckets: %v", n, err)
		}
	}
}

func TestBadTexts(t *testing.T) {
	good, empty := textFile(t, "a b\na b\nb a\n"), textFile(t, "")
	for _, tt := range []struct {
		name string
		f    TextFiles
		w    func(*Words)
		want string
	}{
		{"no file", TextFiles{}, nil, "no file of sentences"},
		{"missing", TextFiles{Src: []string{good + "x"}}, nil, "no such file"},
		{"missing split", TextFiles{Src: []string{good}, Val: "nowhere.txt"}, nil, "the split val, a file or a number of lines: stat nowhere.txt: no such file"},
		{"empty split", TextFiles{Src: []string{good}, Test: empty}, nil, "the split test, a file or a number of lines: " + empty + ": empty, expected a sentence a line"},
		{"UTF-16", TextFiles{Src: []string{textFile(t, "\xff\xfea\x00 \x00b\x00\n\x00a\x00 \x00b\x00")}}, nil, "text.txt: text in UTF-16, expected UTF-8: convert it"},
		{"UTF-16, high bytes first", TextFiles{Src: []string{good}, Val: textFile(t, "\xfe\xff\x00a\x00 \x00b\x00\n")}, nil, "text.txt: text in UTF-16, expected UTF-8: convert it"},
		{"folder", TextFiles{Src: []string{filepath.Dir(good)}}, nil, "a directory, expected a regular file"},
		{"nothing", TextFiles{Src: []string{textFile(t, "")}}, nil, "text.txt: empty, expected a sentence a line"},
		{"nothing, some of it for val", TextFiles{Src: []string{textFile(t, "")}, Val: "5"}, nil, "text.txt: empty, expected a sentence a line"},
		{"only blank", TextFiles{Src: []string{textFile(t, "\n\n")}}, nil, "no line of the training split is a sentence"},
		{"all for val", TextFiles{Src: []string{good}, Val: "2", Test: "1"}, nil, "text.txt: 3 lines, of which --val and --test take all: leave some for training"},
		{"too many", TextFiles{Src: []string{good}, Val: "4"}, nil, "text.txt, expected 0 to 3, or a file"},
		{"one word", TextFiles{Src: []string{textFile(t, "a a\na b\n")}}, nil, "a vocabulary of 1 words, expected 2 at least"},
		{"no text", TextFiles{Src: []string{textFile(t, "\x89PNG\r\n\x1a\nIHDR\n")}}, nil, "give more text, or a smaller --min-count; "},
		{"no word", TextFiles{Src: []string{good}}, func(w *Words) { w.MinCount = 4 }, "a vocabulary of 0 words"},
		{"min count", TextFiles{Src: []string{good}}, func(w *Words) { w.MinCount = 0 }, "--min-count is 0, expected 1 or more"},
		{"one word at most", TextFiles{Src: []string{good}}, func(w *Words) { w.Most = 1 }, "--max-words is 1, expected 2 to"},
		{"too many buckets", TextFiles{Src: []string{good}, Buckets: 100000}, nil, "--buckets is 100000, expected 1 to 4"},
		{"less than no lines", TextFiles{Src: []string{good}, Test: "-1"}, nil, "--test is -1, expected 0 lines or more, or a file"},
	} {
		w := usualWords()
		if tt.w != nil {
			tt.w(&w)
		}
		if _, _, err := importedText(t, tt.f, w, Options{SkipBad: strings.HasPrefix(tt.name, "UTF-16")}); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// The lengths of batches are the best there are, by looking at all of them.
func TestEdges(t *testing.T) {
	lengths := []int{3, 3, 4, 5, 5, 5, 6, 9, 9, 12, 14, 14, 15, 20}
	const longest = 21
	cost := func(e []int) (sum int) {
		for _, l := range lengths {
			for _, edge := range e {
				if l <= edge {
					sum += edge
					break
				}
			}
		}
		return sum
	}
	for n := 1; n <= 3; n++ {
		best := cost([]int{longest})
		for a := 3; a < longest; a++ {
			if n > 1 {
				best = min(best, cost([]int{a, longest}))
			}
			for b := a + 1; n > 2 && b < longest; b++ {
				best = min(best, cost([]int{a, b, longest}))
			}
		}
		got := edges(lengths, longest, n)
		if cost(got) != best || len(got) > n || got[len(got)-1] != longest || !slices.IsSorted(got) {
			t.Errorf("%d buckets: %v cost %d, the best %d", n, got, cost(got), best)
		}
	}
	many := slices.Repeat([]int{5}, 99)
	if got := edges(append(many, 50), 50, 4); !slices.Equal(got, []int{50}) {
		t.Errorf("a bucket of one sentence in a hundred: %v", got)
	}
	if got := edges(append(slices.Repeat([]int{50}, 99), 5), 50, 4); !slices.Equal(got, []int{50}) {
		t.Errorf("a first bucket of one sentence in a hundred: %v", got)
	}
	if got := edges(append(slices.Repeat([]int{5}, 29), 50), 50, 4); !slices.Equal(got, []int{50}) {
		t.Errorf("a bucket of one sentence in thirty, which is less than a twentieth: %v", got)
	}
	if got := edges([]int{4, 4, 4}, 4, 4); !slices.Equal(got, []int{4}) {
		t.Errorf("sentences that are all as long: %v", got)
	}
}

// An import of text ends with its context.
func TestTextStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Text(ctx, TextFiles{Src: []string{textFile(t, "a b\n")}, Buckets: 1}, usualWords()); err == nil {
		t.Error("no error after the end of the context")
	}
}
