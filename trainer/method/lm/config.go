package lm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/sentence"
	"ebtrain/trainer/setting"
)

// Config is everything that defines the computation of a step.
type Config struct {
	Words   string // the vocabulary, spaces between
	Lengths []int  // of batches, rising
	Embed   int    // numbers of a word
	Hidden  int    // units
	Dropout float64
	Clip    float64 // of the gradient's norm
	Adam    optim.Adam
}

// Clone is a copy.
func (c *Config) Clone() algo.Config {
	d := *c
	d.Lengths = slices.Clone(c.Lengths)
	return &d
}

// TakesSentences says what data it is for.
func (c *Config) TakesSentences() bool { return true }

// Fit takes vocabulary and lengths from the data.
func (c *Config) Fit(s data.Schema) error {
	if s.Text == nil {
		return errors.New("--algo lm trains on sentences: give --data of sentences, which mkshards text makes, or another --algo")
	}
	c.Words, c.Lengths = s.Text.Joined(), slices.Clone(s.Text.Edges)
	return nil
}

// words is the vocabulary.
func (c *Config) words() []string { return strings.Split(c.Words, " ") }

// longest is the length of the longest sentence, in tokens.
func (c *Config) longest() int { return c.Lengths[len(c.Lengths)-1] }

// writer is the network.
func (c *Config) writer() sentence.Writer {
	return sentence.Writer{Words: strings.Count(c.Words, " ") + 1, Embed: c.Embed, Hidden: c.Hidden, Dropout: c.Dropout}
}

// Validate says everything that is wrong with the settings.
func (c *Config) Validate() error {
	errs := []error{data.CheckWords(c.words()), c.writer().Validate(), setting.Positive.Check("clip", c.Clip), c.Adam.Validate()}
	if len(c.Lengths) == 0 || !slices.IsSorted(c.Lengths) || c.Lengths[0] < data.MinTokens {
		errs = append(errs, fmt.Errorf("want lengths of batches that rise from %d, got %v", data.MinTokens, c.Lengths))
	}
	return errors.Join(errs...)
}

// maxUnits bounds what can only be a typing mistake.
const maxUnits = 1 << 14

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	s.Int("embed", &c.Embed, 1, maxUnits, "numbers that a word is embedded in")
	s.Int("hidden", &c.Hidden, 1, maxUnits, "units of the LSTM")
	s.Float("dropout", &c.Dropout, setting.Moment, "share of embedded words and of the LSTM's outputs that a step leaves out")

	s.Place(setting.Optimisers)
	c.Adam.Unclipped(s)
	s.Float("clip", &c.Clip, setting.Positive, "largest norm of the gradient")
}

// Method is the language model.
func Method() algo.Method {
	return algo.Method{
		Name:    "lm",
		About:   "a language model: an LSTM that predicts each word from those before it",
		Presets: presets(),
		Decode:  algo.Decoder[Config]("lm"),
	}
}

// presets have the sizes of [ALGORITHMS.md §4, Text].
func presets() []algo.Preset {
	of := func(embed, hidden int) *Config {
		return &Config{Embed: embed, Hidden: hidden, Dropout: 0.5, Clip: 5,
			Adam: optim.Adam{Name: "lm", LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1}}
	}
	const steps = 40_000
	return []algo.Preset{
		{Name: "lm-snli", About: "LSTM on sentences of SNLI", Config: of(256, 256), Batch: 32, Steps: steps},
		{Name: "lm-ptb", About: "LSTM on sentences of the Penn treebank", Config: of(128, 512), Batch: 32, Steps: steps},
		{Name: "lm-yahoo", About: "LSTM on answers of Yahoo", Config: of(512, 1024), Batch: 32, Steps: steps},
	}
}
