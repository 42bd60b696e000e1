package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/method/lebm"
)

// Sets that are compared hold as many pictures as the samples: as many as --samples, as those of
// --samples-from, or as the training pictures beside them, whichever is least.
func TestSetsOfEqualNumbers(t *testing.T) {
	for name, tt := range map[string]struct {
		from               string
		samples, reference int
		want               int
		note               string
	}{
		"fewer than --samples":      {from: "synth:size=8,train=60,test=9,seed=9", samples: 90, want: 60},
		"fewer of all":              {from: "synth:size=8,train=30,test=9,seed=9", samples: 90, reference: 40, want: 30},
		"more than --samples":       {from: "synth:size=8,train=80,test=9,seed=9", samples: 50, want: 50},
		"fewer training pictures":   {from: "synth:size=8,train=80,test=9,seed=9", samples: 90, reference: 40, want: 40, note: "sets hold 40 pictures in place of 90 (--samples), since that is how many training pictures there are to compare with"},
		"of a model, fewer of them": {samples: 80, reference: 40, want: 40, note: "sets hold 40 pictures in place of 80 (--samples), since that is how many training pictures there are to compare with"},
	} {
		e := comparingToy(t)
		e.o.measures, e.o.cache, e.o.samples, e.o.reference = compare.Neighbours, noCache, tt.samples, tt.reference
		if tt.from != "" {
			e.trained, e.o.run, e.o.samplesFrom = nil, "", tt.from
			if err := e.load(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := e.measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for set, n := range r.Quality.Sizes {
			if n != tt.want {
				t.Errorf("%s: %s has %d pictures, want %d", name, set, n, tt.want)
			}
		}
		if said := strings.Join(r.Quality.Notes, "\n"); len(r.Quality.Sizes) != 7 || strings.Contains(said, "--samples") != (tt.note != "") || !strings.Contains(said, tt.note) {
			t.Errorf("%s: %v; it says %q, want %q", name, r.Quality.Sizes, said, tt.note)
		}
	}
}

// So do sets of sentences: a model of n-grams depends on how many it is made of.
func TestSentencesOfEqualNumbers(t *testing.T) {
	data := prose(t)
	for _, own := range []bool{true, false} {
		e := writing(t, data, lebm.EBM)
		e.judge, e.o.measures, e.o.samples = nil, "forward,reverse", 300
		if !own {
			e.trained, e.o.run, e.o.samplesFrom = nil, "", data
			if err := e.load(); err != nil {
				t.Fatal(err)
			}
		}
		c := e.mustMeasure(t).Quality
		for _, name := range c.sets() {
			if n := c.Sizes[name]; n != 200 && name != setFloor {
				t.Errorf("a model's samples: %t: %s has %d sentences, want as many as there are training sentences", own, name, n)
			}
		}
		const note = "sets hold 200 sentences in place of 300 (--samples), since that is how many training sentences there are to compare with"
		if !slices.Contains(c.Notes, note) {
			t.Errorf("a model's samples: %t: it says %q", own, c.Notes)
		}
	}
}

// What a note on a small floor advises is taken: the same measures, but for a Fréchet distance of
// fewer pictures than that wants.
func TestAdviceOnAFloor(t *testing.T) {
	for _, tt := range []struct {
		measures    string
		floor       int
		want, fails string
	}{
		{"frechet,kid,swd", 900, "--samples 900 --measures kid,swd", ""},
		{"frechet,kid,swd", 3000, "--samples 3000", ""},
		{"kid,swd", 900, "--samples 900", ""},
	} {
		c := comparison{Sizes: map[string]int{}}
		for _, set := range []string{setSamples, setFloor, setNoise} {
			c.keep(set, 5000, []compare.Value{{Row: compare.SWD, Value: 1}})
		}
		c.Sizes[setFloor] = tt.floor
		c.fewer(options{measures: tt.measures}, compare.LeastFrechet, "pictures")
		if len(c.Notes) != 1 {
			t.Fatalf("%q", c.Notes)
		}
		_, advice, _ := strings.Cut(c.Notes[0], "give ")
		if advice != tt.want {
			t.Errorf("%s beside a floor of %d: it says %q, want %q", tt.measures, tt.floor, advice, tt.want)
		}
		if _, err := parse(append([]string{"--run", "runs/a", "--measures", tt.measures}, strings.Fields(advice)...), io.Discard); err != nil {
			t.Errorf("%s is refused: %v", advice, err)
		}
	}
}
