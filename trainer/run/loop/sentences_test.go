package loop_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/loop"
)

// prose is 90 sentences of 3 to 12 tokens.
type prose struct{ more int } // words that sentence 0 has besides

func (p prose) Schema() data.Schema {
	words := append(data.ReservedWords(), "a", "b", "c", "d", "e")
	return data.Schema{C: 1, H: 1, W: 12, DType: safetensors.I32, Text: &data.Text{Words: words, Edges: []int{5, 8, 12}}}
}

func (p prose) Len() int64          { return 90 }
func (p prose) Layout() data.Layout { return data.Layout{BlockSamples: 16, Shards: []int64{90}} }
func (p prose) Digest() string      { return "prose" }

func (p prose) ReadBlock(i int, dst *data.Block) error {
	span := p.Layout().Spans()[i]
	dst.Grow(p.Schema(), span.N)
	dst.Values, dst.Ends = dst.Values[:0], dst.Ends[:0]
	put := func(t int) { dst.Values = binary.LittleEndian.AppendUint32(dst.Values, uint32(t)) }
	for j := range span.N {
		n := int(span.First) + j
		words := 1 + n*n%11%10
		if n == 0 {
			words += p.more
		}
		put(data.Begin)
		for k := range words {
			put(data.Reserved + (n+k)%5)
		}
		put(data.End)
		dst.Labels[j], dst.Ends = -1, append(dst.Ends, int64(len(dst.Values)/4))
	}
	return nil
}

// literate is a small language model of that prose.
func literate(t *testing.T) algo.Model {
	t.Helper()
	c := preset(t, "lm-snli")
	if err := algotest.Given(c, map[string]string{"embed": "4", "hidden": "6", "lr": "0.01"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Fit(prose{}.Schema()), c.Validate()); err != nil {
		t.Fatal(err)
	}
	return c.Model()
}

// announced keeps the lines that rank 0 is told.
type announced struct {
	*watch
	lines []string
}

func (a *announced) Announce(line string) error {
	a.lines = append(a.lines, line)
	return nil
}

// reading is a job of the language model, and what rank 0 is told.
func reading(t *testing.T, world int, config loop.Config) (*job, *announced) {
	t.Helper()
	m, told := literate(t), &announced{}
	j := &job{world: world, config: config, data: func(int, data.Source) data.Source { return prose{} }}
	j.parts = func(rank int, p *loop.Parts) {
		p.Model = m
		if rank == 0 {
			told.watch = j.seen
			p.Observer = told
		}
	}
	return j, told
}

func values(records []loop.Record) (all []float64) {
	for _, r := range records {
		all = append(all, r.Values...)
	}
	return all
}

// Ranks have equal losses on ragged sentences; each length is compiled once, when it
// is first met, and said in a line.
func TestSentencesOnRanks(t *testing.T) {
	var want []float64
	for _, world := range []int{1, 2, 4} {
		j, told := reading(t, world, loop.Config{Batch: 8, Steps: 24, Seed: 3, CheckEvery: 5})
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
		got := values(j.seen.records)
		if world == 1 {
			want = got
		}
		if len(got) != len(want) {
			t.Fatalf("%d ranks: %d numbers, one has %d", world, len(got), len(want))
		}
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= 2e-5*(1+math.Abs(want[i]))) {
				t.Errorf("%d ranks: number %d is %v, of one rank %v", world, i, got[i], want[i])
			}
		}
		if len(told.lines) != 3 {
			t.Fatalf("%d ranks: told %q, want a line for each of three lengths", world, told.lines)
		}
		for _, l := range []int{5, 8, 12} {
			if !slices.ContainsFunc(told.lines, func(s string) bool { return strings.Contains(s, fmt.Sprintf("sentences of up to %d tokens", l)) }) {
				t.Errorf("told %q, and nothing of %d tokens", told.lines, l)
			}
		}
	}
}

// With virtual shards the bits are those of any number of ranks.
func TestSentencesHaveTheSameBits(t *testing.T) {
	var want []float64
	for _, world := range []int{1, 2, 4} {
		j, _ := reading(t, world, loop.Config{Batch: 8, Steps: 12, Seed: 3, Shards: 4})
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
		if got := values(j.seen.records); world == 1 {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("%d ranks have other bits than one", world)
		}
	}
}

// A run that is interrupted anywhere and resumed is the one that was not, with
// sentences waiting in their buckets.
func TestSentencesResume(t *testing.T) {
	for _, world := range []int{1, 2} {
		whole, _ := reading(t, world, loop.Config{Batch: 8, Steps: 16, Seed: 3, CkptDir: t.TempDir()})
		if _, errs := whole.run(t); errors.Join(errs...) != nil {
			t.Fatal(errors.Join(errs...))
		}
		dir := t.TempDir()
		var got []float64
		for _, until := range []int64{3, 7, 16} {
			j, _ := reading(t, world, loop.Config{Batch: 8, Steps: until, Seed: 3, CkptDir: dir, Resume: until > 3})
			if _, errs := j.run(t); errors.Join(errs...) != nil {
				t.Fatal(errors.Join(errs...))
			}
			got = append(got, values(j.seen.records)...)
		}
		if want := values(whole.seen.records); !slices.Equal(got, want) {
			t.Errorf("%d ranks: a resumed run has other losses", world)
		}
	}
}

// Ranks whose sentences are of other lengths are told before the first step.
func TestSentencesThatDiffer(t *testing.T) {
	j, _ := reading(t, 2, loop.Config{Batch: 8, Steps: 4, Seed: 3})
	j.data = func(rank int, _ data.Source) data.Source { return prose{6 * rank} }
	_, errs := j.run(t)
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "sentences in batches of 5 tokens") || len(j.seen.records) > 0 {
		t.Errorf("%v after %d steps", err, len(j.seen.records))
	}
}

// longest is a model of sentences that has the step of the longest for all.
type longest struct{ algo.Model }

func (l longest) Lengths() []int { return l.Model.(algo.Sequential).Lengths() }

func (l longest) StepOf(_, world, batch int) (*graph.Graph, []nn.Variable, error) {
	return l.Model.(algo.Sequential).StepOf(slices.Max(l.Lengths()), world, batch)
}

// Ranks whose steps of a length differ are told when that length is first met, before
// anything is computed with them.
func TestStepsOfSentencesThatDiffer(t *testing.T) {
	models := []algo.Model{inferring(t, "false"), longest{inferring(t, "false")}}
	j := job{world: 2, config: loop.Config{Batch: 8, Steps: 8, Seed: 3}, data: func(int, data.Source) data.Source { return prose{} }}
	j.parts = func(rank int, p *loop.Parts) { p.Model = models[rank] }
	_, errs := j.run(t)
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "ranks disagree: program for ") {
			t.Errorf("rank %d: %v after %d steps", r, err, len(j.seen.records))
		}
	}
}

// A model of sentences on pictures, and the other way round.
func TestSentencesNeedTheirModel(t *testing.T) {
	j, _ := reading(t, 1, loop.Config{Batch: 8, Steps: 1, Seed: 3})
	j.data = nil
	if _, errs := j.run(t); errs[0] == nil || !strings.Contains(errs[0].Error(), "sentences need a model of sentences") {
		t.Errorf("pictures: %v", errs[0])
	}
	k := job{world: 1, config: loop.Config{Batch: 8, Steps: 1, Seed: 3}, data: func(int, data.Source) data.Source { return prose{} }}
	if _, errs := k.run(t); errs[0] == nil || !strings.Contains(errs[0].Error(), "sentences need a model of sentences") {
		t.Errorf("sentences: %v", errs[0])
	}
}

func TestStepsOfSentencesAllocateNothing(t *testing.T) {
	for world := 1; world <= 2; world++ {
		j := job{world: world, data: func(int, data.Source) data.Source { return prose{} }}
		j.allocatesNothing(t, literate(t))
	}
}
