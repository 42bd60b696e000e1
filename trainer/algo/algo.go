// Package algo is what a training method is to the programs: what train,
// sample, evaluate and experiment may ask of one, and nothing of how it is
// asked. It knows no flags and no launcher, and no method knows more of the
// programs than this.
//
// A Method is a name with presets. A preset holds a Config, which defines what
// a step computes; fitted to the data and valid, a Config gives a Model, which
// builds the graphs. What a model can do besides training is found by type
// assertion: Sampler, Reconstructor, and the other interfaces of capability.go.
//
// Configs and Models are plain values without hidden state; a Config is changed
// by its Settings and by Fit only, and then belongs to one goroutine.
package algo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/setting"
)

// Method is one training method, as published.
type Method struct {
	Name    string // of --algo
	About   string // what it is, in a line
	Presets []Preset
	// Nets are the kinds of networks that it has settings for, the values of
	// --net; empty where there is no choice. Their Configs are Networked.
	Nets []string
	// Decode reads a Config from its JSON, as json.Marshal wrote it.
	Decode func(json.RawMessage) (Config, error)
}

// Preset is the settings of one experiment. The first of a method are its
// defaults.
type Preset struct {
	Name, About string
	Net         string // its networks, where the method has Nets
	Config      Config // cloned before use
	Batch       int    // over all ranks
	Steps       int64  // of the published run
	Flip        bool   // pictures are mirrored left to right at random
}

// Preset is the preset of that name.
func (m Method) Preset(name string) (Preset, error) {
	var names []string
	for _, p := range m.Presets {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("unknown preset %q: want one of %s", name, strings.Join(names, ", "))
}

// Config is everything that defines the computation of a step. Its JSON holds
// all of it: equal configs have equal JSON.
type Config interface {
	Clone() Config
	// Settings adds what a user may change.
	Settings(*setting.Set)
	// Fit takes sizes from the data. Sizes that cannot be taken are a *Misfit; any
	// other error is a sentence that says what does not fit.
	Fit(data.Schema) error
	// Validate says everything that is wrong.
	Validate() error
	// Model is the model of a config that fits its data and is valid.
	Model() Model
}

// Networked is a Config of a method with several kinds of networks.
type Networked interface {
	// SetNet takes the networks of that name, one of the method's Nets, with all
	// their sizes, and changes nothing else.
	SetNet(name string) error
}

// ScoreLosses is a Config that says whether its losses are of scores, the
// derivatives of log densities, which they differentiate again. Such losses want
// full precision: their terms cancel to a small part of each.
type ScoreLosses interface {
	ScoreLosses() bool
}

// ForSentences is a Config that says whether it takes data of sentences; one that does
// not say takes none.
type ForSentences interface {
	TakesSentences() bool
}

// TakesSentences says whether a config takes data of sentences.
func TakesSentences(c Config) bool {
	s, ok := c.(ForSentences)
	return ok && s.TakesSentences()
}

// Grouped is a Config or a Model whose losses compare samples: those of Group
// consecutive slots of the global batch, the first of them a multiple of Group, are
// seen together, so every rank's share of a batch is a multiple of it.
type Grouped interface {
	Group() int
}

// GroupOf is how many samples a Config or a Model sees together; 1 where it does not
// say.
func GroupOf(x any) int {
	if g, ok := x.(Grouped); ok {
		return g.Group()
	}
	return 1
}

// Spread is a Config whose losses spread something over the samples of the global batch, of
// which there are LeastBatch at least.
type Spread interface {
	LeastBatch() int
}

// LeastBatchOf is how many samples a global batch of a Config has at least; 1 where it does
// not say.
func LeastBatchOf(c Config) int {
	if s, ok := c.(Spread); ok {
		return s.LeastBatch()
	}
	return 1
}

// Misfit says which sizes a model takes, where data have others.
type Misfit struct {
	What    string // what takes them: "--net conv32"
	C, H, W int    // 0 is any
}

func (m *Misfit) Error() string { return fmt.Sprintf("%s takes %dx%d", m.What, m.H, m.W) }

// Inputs are the fields of a batch that a model reads, each an input of its
// graphs whose first axis is samples. Every model reads InputImages, but a
// Sequential one InputTokens and InputLengths.
type Inputs struct {
	Shape graph.Shape  // of one sample: (C, H, W); of sentences (1, 1, tokens of the longest)
	Range loader.Range // which values the bytes of pictures become
	// Words are, of sentences, the vocabulary: token i is Words[i]; nil for others.
	// It is the model's own, and not changed.
	Words []string
}

// Column is an entry of a step's report.
type Column struct {
	Name  string
	Shown bool // in the line of progress; the others are only kept
}

// Loss says whether it is a loss or what one is made of: not the length of a gradient,
// whose name begins with "grad", nor ReportStop.
func (c Column) Loss() bool { return c.Name != ReportStop && !strings.HasPrefix(c.Name, "grad") }

// Names are the names of columns.
func Names(columns []Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// Columns are columns by name; those of shown are shown.
func Columns(names []string, shown ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i].Name = name
		for _, s := range shown {
			columns[i].Shown = columns[i].Shown || s == name
		}
	}
	return columns
}

// Model builds the graphs of a method. Its graphs take the inputs named below,
// besides those that Feeder fills.
type Model interface {
	Takes() Inputs
	// Step builds one training step for a rank that sees batch samples of the
	// world·batch in the global batch, and lists the variables of the model.
	Step(world, batch int) (*graph.Graph, []nn.Variable, error)
	// Report are the entries of the step's output OutputReport, a vector of F32.
	// All ranks get the same numbers. Exactly one is ReportStop.
	Report() []Column
	// Feeder finds the method's own inputs of p, where p has them. What it returns
	// fills them for a step, with pure functions of the step and the epoch, both
	// from 0, and allocates nothing.
	Feeder(p exec.Program) func(step int64, epoch int)
}

// Sequential is a Model of sentences. Batches come padded to one of a few lengths,
// for each of which there is a step; all of them have the same variables, inputs of
// the model's own and report. Its Step is that of the longest.
type Sequential interface {
	// Lengths are those that batches have, rising, in tokens.
	Lengths() []int
	// StepOf is Step for batches of length tokens.
	StepOf(length, world, batch int) (*graph.Graph, []nn.Variable, error)
}

// StepOf builds a step of m for batches of length tokens; 0 for samples that are no
// sentences.
func StepOf(m Model, length, world, batch int) (*graph.Graph, []nn.Variable, error) {
	if s, ok := m.(Sequential); ok && length > 0 {
		return s.StepOf(length, world, batch)
	}
	return m.Step(world, batch)
}

// Staged is a Model whose step has chains of so many transitions that one program cannot
// hold them: they run before it, as programs of their own.
type Staged interface {
	// Stages are what runs, in this order and on the same batch, before each step that
	// StepOf builds of the same arguments; none if the step needs none. A stage takes
	// shared inputs only, but not InputStop, and has no output. What it leaves is in
	// variables of role nn.Scratch, which the step declares, and it assigns no others. The
	// first axis of those that have one is the samples of the rank.
	Stages(length, world, batch int) ([]chain.Stage, error)
}

// StagesOf are the stages before the step that StepOf builds of the same arguments;
// none where it has none.
func StagesOf(m Model, length, world, batch int) ([]chain.Stage, error) {
	s, ok := m.(Staged)
	if !ok {
		return nil, nil
	}
	if q, ok := m.(Sequential); ok && length == 0 {
		length = slices.Max(q.Lengths())
	}
	return s.Stages(length, world, batch)
}

// Split are the shared inputs whose first axis is samples, and those of vars.
func Split(vars []nn.Variable) map[string]bool {
	split := map[string]bool{InputImages: true, InputTokens: true, InputLengths: true}
	for _, v := range vars {
		if v.Role == nn.Scratch && v.Type.Shape.Rank() > 0 {
			split[v.Name] = true
		}
	}
	return split
}

// OfShards are the variables of a rank that plays so many virtual ones, of which vars
// are one's.
func OfShards(vars []nn.Variable, shards int) []nn.Variable {
	vars, split := slices.Clone(vars), Split(vars)
	for i, v := range vars {
		if split[v.Name] {
			vars[i].Type.Shape = v.Type.Shape.With(0, v.Type.Shape.At(0)*shards)
		}
	}
	return vars
}

// Names of inputs and outputs that all models share.
const (
	InputImages  = "images"  // F32 (batch, C, H, W), in the range of Inputs
	InputTokens  = "tokens"  // I32 (batch, length), padded, of sentences
	InputLengths = "lengths" // I32 (batch), tokens of each sentence; 0 of an empty slot
	InputKey     = "key"     // graph.KeyType: seed, step, first sample of this rank
	InputStop    = "stop"    // F32 scalar: 1 asks all ranks to stop after this step
	OutputReport = "report"
	ReportStop   = "stop" // the mean of InputStop over ranks
)
