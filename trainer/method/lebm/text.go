package lebm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/sentence"
	"ebtrain/trainer/setting"
)

// LSTM is the networks of sentences: their generator is a model/sentence.Writer with
// a latent.
const LSTM Shape = "lstm"

// Text is what a config of sentences has besides.
type Text struct {
	Words   string // the vocabulary, spaces between
	Lengths []int  // of batches, rising
	Embed   int    // numbers of a word
	Hidden  int    // units
	Dropout float64
	Clip    float64 // of the norm of the generator's gradient
	// Staged runs the posterior's chain before a step, as a program of one transition:
	// the same draws and the same latents, but for rounding.
	Staged bool `json:",omitempty"`
}

// usualText are the sizes that the paper has for SNLI.
func usualText() *Text { return &Text{Embed: 256, Hidden: 256, Dropout: 0.5, Clip: 5} }

// Clone is a copy; nil of nil.
func (t *Text) Clone() *Text {
	if t == nil {
		return nil
	}
	u := *t
	u.Lengths = slices.Clone(t.Lengths)
	return &u
}

// fit takes vocabulary and lengths from the data.
func (t *Text) fit(s data.Schema) error {
	if s.Text == nil {
		return errors.New("this preset trains on sentences: give --data of sentences, which mkshards text makes, or take a preset for pictures (lebm-svhn)")
	}
	t.Words, t.Lengths = s.Text.Joined(), slices.Clone(s.Text.Edges)
	return nil
}

func (t *Text) words() []string { return strings.Split(t.Words, " ") }

func (t *Text) longest() int { return t.Lengths[len(t.Lengths)-1] }

// writer is the generator.
func (t *Text) writer(latent int) sentence.Writer {
	return sentence.Writer{Words: strings.Count(t.Words, " ") + 1, Embed: t.Embed, Hidden: t.Hidden, Latent: latent, Dropout: t.Dropout}
}

func (t *Text) validate(latent int) error {
	errs := []error{data.CheckWords(t.words()), t.writer(latent).Validate(), setting.Positive.Check("clip", t.Clip)}
	if len(t.Lengths) == 0 || !slices.IsSorted(t.Lengths) || t.Lengths[0] < data.MinTokens {
		errs = append(errs, fmt.Errorf("want lengths of batches that rise from %d, got %v", data.MinTokens, t.Lengths))
	}
	return errors.Join(errs...)
}

// maxUnits bounds what can only be a typing mistake.
const maxUnits = 1 << 14

// settings adds what a user may change of it.
func (t *Text) settings(s *setting.Set) {
	s.Int("embed", &t.Embed, 1, maxUnits, "numbers that a word is embedded in")
	s.Int("hidden", &t.Hidden, 1, maxUnits, "units of the LSTM")
	s.Float("dropout", &t.Dropout, setting.Moment, "share of embedded words and of the LSTM's outputs that a step of the generator leaves out")
	s.Bool("staged", &t.Staged, "run the chain that infers latents as a small program of its own, many times before each step, and not within it: for long sentences")
	s.Float("clip", &t.Clip, setting.Positive, "largest norm of the generator's gradient")
}

// written is the decoder of the sentences of a batch. What makes sentences of latents
// is a chain of its own: decode is none of its matters.
type written struct {
	writer sentence.Writer
	batch  sentence.Batch
	drop   sentence.Drop
}

// loss is −log p(x|z) of each sentence, added over its words and its end.
func (w written) loss(c *nn.Context, _, z graph.ID) (nll graph.ID) {
	c.Scope(generatorNet, func() { nll = w.writer.NLL(c, w.batch, z, w.drop) })
	return nll
}

// outputs are the loss, and how many words of each sentence are told, under these names.
func (w written) outputs(c *nn.Context, z graph.ID, loss, told string) {
	c.Scope(generatorNet, func() {
		nll, n := w.writer.Told(c, w.batch, z)
		c.Output(loss, nll)
		c.Output(told, n)
	})
}

func (w written) precision() float64 { return 1 }
