package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// prose makes a data set of ragged sentences at name: words that follow each other.
// Its path is returned.
func (s *site) prose(name string, more ...string) string {
	s.t.Helper()
	words := strings.Fields("a man and woman walk slowly through the old park with their small brown dog")
	var b strings.Builder
	for i := range 90 {
		from, n := i%len(words), 1+i*i%11%10
		for k := range n {
			fmt.Fprint(&b, words[(from+k)%len(words)], " ")
		}
		b.WriteByte('\n')
	}
	file := s.path(name + ".txt")
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		s.t.Fatal(err)
	}
	out := s.path(name)
	s.must(append([]string{"mkshards", "text", "--src", file, "--val", "10", "--test", "20", "--out", out}, more...)...)
	return out
}

// reads are the flags of a small language model.
var reads = []string{"--batch", "12", "--embed", "8", "--hidden", "12", "--threads", "1"}

// TestSentences goes from text to a trained model, its perplexity, and sentences that
// it writes.
func TestSentences(t *testing.T) {
	long(t)
	s := newSite(t)
	data := s.prose("text")
	flags := append([]string{"train", "--preset", "lm-snli", "--data", data, "--steps", "150", "--lr", "0.02", "--dropout", "0", "--out", "run"}, reads...)
	e := s.must(on(2, flags)...)
	if n := strings.Count(e.stdout, "compiled for sentences of up to"); n < 2 || n > 4 {
		t.Errorf("%d lines say that a program was compiled: %v", n, e)
	}
	if strings.Contains(e.stdout, "images/s") || !strings.Contains(e.stdout, "60 sentences of") {
		t.Errorf("sentences are called something else: %v", e)
	}
	var got struct {
		Images    int
		Sentences struct {
			NLL, Perplexity, Accuracy float64
			NLLWord                   float64 `json:"nll_word"`
			Words                     int64
			Unknown                   int64
		}
	}
	evaluate := func(more ...string) float64 {
		t.Helper()
		e := s.must(append([]string{"evaluate", "--run", "run", "--json"}, more...)...)
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
			t.Fatal(err)
		}
		return got.Sentences.NLL
	}
	// Words follow each other, so a model that has learnt knows all but the first and
	// the end.
	all, told := evaluate(), got.Sentences.Accuracy
	if !(told > 0.5 && told < 1) {
		t.Errorf("%v of the words are told, want more than half", told)
	}
	if v := got.Sentences; got.Images != 20 || v.Perplexity > 6 || v.Perplexity < 1 || !(math.Abs(v.NLLWord*float64(v.Words)-20*v.NLL) <= 1e-3) || v.Unknown != 0 {
		t.Errorf("%+v", got)
	}
	// Two ranks share the sentences that are written and judged, and find the same.
	judge := []string{"evaluate", "--run", "run", "--measures", "forward,reverse", "--judge", "run", "--samples", "40", "--batch", "8", "--threads", "1", "--json"}
	if alone, two := s.must(judge...).stdout, s.must(on(2, judge)...).stdout; strings.TrimPrefix(two, "[0] ") != alone || !strings.Contains(alone, `"forward-judge"`) {
		t.Errorf("two ranks find %s, one %s", two, alone)
	}
	// Neither how many are read at a time nor how they are padded counts.
	for _, batch := range []string{"2", "7", "20"} {
		if nll := evaluate("--batch", batch); !(math.Abs(nll-all) <= 1e-4) || got.Sentences.Accuracy != told {
			t.Errorf("−log p is %v in batches of %s, and %v; told are %v and %v", nll, batch, all, got.Sentences.Accuracy, told)
		}
	}
	other := s.prose("padded", "--buckets", "1", "--vocabulary", data+"/vocabulary.txt")
	if nll := evaluate("--data", other); !(math.Abs(nll-all) <= 1e-4) || got.Sentences.Accuracy != told {
		t.Errorf("−log p is %v padded to one length, and %v; told are %v and %v", nll, all, got.Sentences.Accuracy, told)
	}
	evaluate("--limit", "5")
	if got.Images != 5 {
		t.Errorf("%d sentences of 5 are measured", got.Images)
	}

	s.must("sample", "--run", "run", "--n", "10", "--out", "drawn.txt")
	for _, file := range []string{s.path("drawn.txt"), s.path("run", "samples", "step-00000150.txt")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n != 10 && n != 64 || !strings.Contains(string(text), "old park") {
			t.Errorf("%s holds %d lines: %q", file, n, text)
		}
		if strings.Contains(string(text), "<s>") || strings.Contains(string(text), "<pad>") || strings.Contains(string(text), "</s>") {
			t.Errorf("%s has tokens that are no words: %q", file, text)
		}
	}
}

// TestLatentsOfSentences: latents that are not yet of any use are said to have
// collapsed, and those of a model that has learnt to use them are not.
func TestLatentsOfSentences(t *testing.T) {
	long(t)
	s := newSite(t)
	data := s.prose("text")
	small := append([]string{"--latent", "8", "--nef", "16", "--prior-steps", "10", "--posterior-steps", "10", "--posterior-step-size", "0.3", "--dropout", "0", "--lr-generator", "0.02"}, reads...)
	for _, tt := range []struct {
		preset, out, steps string
		collapsed          bool
	}{{"lebm-snli", "new", "1", true}, {"lebm-yahoo", "trained", "400", false}} {
		e := s.must(append([]string{"train", "--preset", tt.preset, "--data", data, "--samples", "4", "--steps", tt.steps, "--out", tt.out}, small...)...)
		if !strings.Contains(e.stdout, "compiled for sentences of up to") {
			t.Error(e)
		}
		e = s.must("evaluate", "--run", tt.out, "--split", "train", "--json")
		var got struct {
			Recollection struct {
				Given, Blind struct{ NLL float64 }
				Collapsed    bool
			}
		}
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
			t.Fatal(err)
		}
		if r := got.Recollection; r.Collapsed != tt.collapsed || !(r.Given.NLL > 0 && r.Blind.NLL > 0) {
			t.Errorf("after %s steps: %+v, want collapsed %v", tt.steps, r, tt.collapsed)
		}
		if table := s.must("evaluate", "--run", tt.out).stdout; strings.Contains(table, "collapsed: the latents tell nothing") != tt.collapsed {
			t.Errorf("after %s steps: %s", tt.steps, table)
		}
	}
}

// TestMistakesWithSentences: each is one sentence, of one rank and of two.
func TestMistakesWithSentences(t *testing.T) {
	long(t)
	s := newSite(t)
	data := s.prose("text")
	others := s.prose("others", "--min-count", "22")
	s.must(append([]string{"train", "--preset", "lm-snli", "--data", data, "--steps", "2", "--samples", "0", "--out", "run"}, reads...)...)
	s.must(append([]string{"train", "--preset", "lm-snli", "--data", others, "--steps", "2", "--samples", "0", "--out", "other"}, reads...)...)
	s.must(append([]string{"train", "--preset", "lebm-snli", "--data", data, "--steps", "1", "--prior-steps", "1", "--posterior-steps", "1", "--samples", "0", "--out", "prior"}, reads...)...)
	for _, tt := range []struct {
		name, args string
		n, code    int
		want       string
	}{
		{"a text preset on pictures", "train --preset lm-snli --data synth --out z", 0, 1, `^--data synth holds 32x32 pictures, and --algo lm trains on sentences: give --data of sentences`},
		{"on two ranks", "train --preset lm-snli --data synth --out z", 2, 1, `--algo lm trains on sentences: give --data of sentences`},
		{"a preset of pictures on text", "train --preset lebm-svhn --out z --data " + data, 0, 1, `holds sentences, and --algo lebm is not set up for them: give other --data, or a preset for sentences`},
		{"flips", "train --preset lm-snli --flip --out z --data " + data, 0, 2, `^--flip mirrors pictures, and --data .* holds sentences: leave it out`},
		{"another vocabulary", "evaluate --run run --data " + others, 0, 1, `holds sentences of another vocabulary \([0-9]+ words\) than the model of run was trained with`},
		{"resumed on another vocabulary", "train --resume --out run --steps 4 --data " + others, 0, 1, `does not hold the samples that the run in run was trained on`},
		{"begun on another vocabulary", "train --preset lm-snli --from run --out z --data " + others, 0, 1, `^--from: .* holds sentences of another vocabulary \([0-9]+ words\) than the model of run was trained with`},
		{"sentences as a picture", "sample --run run --out z.png", 0, 1, `^--out z.png: the samples of run are sentences: sentences go into a file whose name ends in .txt`},
		{"a judge that is no language model", "evaluate --run run --measures forward --judge prior", 0, 1, `^--judge prior is a run of --algo lebm, whose models give sentences no likelihood: name a run of a language model`},
		{"a judge of another vocabulary", "evaluate --run other --measures forward --judge run", 0, 1, `^--judge: .* holds sentences of another vocabulary`},
		{"a judge of no use", "evaluate --run run --judge run", 0, 2, `^--judge is for --measures forward, which is not asked for: name one, or leave --judge out`},
		{"perplexities of pictures", "evaluate --samples-from synth --data synth --measures forward,reverse", 0, 1, `^--measures forward of synth: its samples are no sentences; --measures reverse of synth: its samples are no sentences`},
		{"magnified sentences", "sample --run run --scale 2 --out z.txt", 0, 1, `^--scale and --given are of pictures`},
		{"reconstructions of text", "evaluate --run run --measures rmse", 0, 1, `its models give no reconstructions`},
		{"pictures for a model of text", "evaluate --run run --data synth", 0, 1, `takes sentences of a vocabulary of [0-9]+ words: give a data set of sentences`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.t = t
			checkSentence(t, s.run(on(tt.n, strings.Fields(tt.args))...), tt.n, tt.code, tt.want)
		})
	}
}
