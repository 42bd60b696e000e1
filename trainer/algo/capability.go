package algo

import (
	"errors"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// What else a model can do. Programs find out by type assertion and use what is
// there. Graphs take InputImages (n, C, H, W), and InputKey where they draw;
// results have a row for each sample. Mode is nn.BatchStats or nn.Eval: whose
// statistics batch norm uses; models without batch norm do not look at it.

// Sampler draws from the model. The plan's result is n samples (n, C, H, W).
type Sampler interface {
	Sample(mode nn.Mode, n int) (chain.Plan, error)
}

// Drawn is a Sampler whose samples may be means of the model, as papers show pictures, and
// so have none of its noise. SampleDrawn draws n samples of the model itself: the plan's
// result is that of Sample.
type Drawn interface {
	SampleDrawn(mode nn.Mode, n int) (chain.Plan, error)
}

// Primed is a Sampler whose latents come from a prior that was learnt. SampleNormal draws
// n samples of latents from N(0, I) in its place, by the same generator: the plan's
// result is that of Sample.
type Primed interface {
	SampleNormal(mode nn.Mode, n int) (chain.Plan, error)
}

// Reconstructor gives each sample back from its latents: OutputRecon.
type Reconstructor interface {
	Reconstruct(mode nn.Mode, n int) (*graph.Graph, error)
}

// Energetic gives energies: OutputLogit and OutputEnergy. E has no constant that
// depends on more than the weights, so exp(−E) is the density but for its
// normaliser.
type Energetic interface {
	Energies(mode nn.Mode, n int) (*graph.Graph, error)
}

// Encoder gives the means of the posterior, or where a chain draws from it the end
// of that chain: OutputCode (n, d).
type Encoder interface {
	Encode(n int) (*graph.Graph, error)
}

// Conditional draws pictures with given latents: the plan's first variable holds
// them, (n, d), and is set by whoever runs it.
type Conditional interface {
	SampleGiven(n int) (chain.Plan, error)
}

// Scored gives ∇_v log p(v), or an estimate: OutputScore (n, C, H, W).
type Scored interface {
	Score(n int) (*graph.Graph, error)
}

// Normalised can normalise its energies: log p(v) = −E(v) − log Z.
type Normalised interface {
	LogZ(LogZOptions) (Normaliser, error)
}

// LogZOptions are the effort of an estimate by annealed importance sampling.
type LogZOptions struct {
	Exact  bool // by enumeration; ErrTooMany where that is too much
	Chains int
	Steps  int
	// Back anneals from the model back to where it begins otherwise: the plan's first
	// variable holds Chains pictures, and is set by whoever runs it.
	Back bool
}

// ErrTooMany says that a model has more states than can be enumerated.
var ErrTooMany = errors.New("too many states to enumerate")

// Normaliser computes log Z: the logarithm of the mean of the exponentials of the
// plan's result, log weights (chains). An exact one has a single weight. Back, it is
// minus that logarithm.
type Normaliser struct {
	Plan  chain.Plan
	Exact bool
}

// FisherScored gives each sample's term of the Fisher divergence to the data but
// for the data's constant, ½‖∇log p‖² + tr ∇²log p: OutputFisher (n).
type FisherScored interface {
	FisherLoss(n int) (*graph.Graph, error)
}

// Losing gives each sample's term of the loss that the model's weights descend:
// OutputLoss (n). Graphs take InputKey where the loss draws. That of held-out
// samples chooses among checkpoints.
type Losing interface {
	Loss(n int) (*graph.Graph, error)
}

// Literate gives −log p of sentences of at most length tokens, the sum over the words
// of each and its end: OutputLoss (n), of InputTokens and InputLengths; and how many of
// these the model tells from what stands before them: OutputTold (n). Graphs take
// InputKey where they draw.
type Literate interface {
	NLL(length, n int) (*graph.Graph, error)
}

// Recollecting gives −log p(x|z) of sentences of at most length tokens: OutputLoss (n)
// for latents inferred from each, and OutputBlind (n) for latents that know nothing of
// it, with OutputTold and OutputBlindTold as those of Literate. Where both are the same,
// the latents are not used. Graphs take InputKey.
//
// Before it, on the same sentences, run the stages of Inferring, with variables of their
// own, whose names begin with chain.Prefix; none where the graph infers by itself.
type Recollecting interface {
	Recon(length, n int) (*graph.Graph, error)
	Inferring(length, n int) ([]chain.Stage, []nn.Variable, error)
}

// Inferred has an approximate posterior, whose divergence from the model's it
// can measure for each sample: OutputGap (n). Graphs take InputKey.
type Inferred interface {
	PosteriorGap(n int) (*graph.Graph, error)
}

// Criticised has a critic, which estimates the Fisher divergence of the data from a
// fixed model: each sample's term of the estimate, and of the truth where the data are
// N(0, I), OutputEstimate and OutputTruth (n). Graphs take InputKey.
type Criticised interface {
	Divergence(n int) (*graph.Graph, error)
}

// Diagnosing knows what a report says of a step that has come apart, beyond numbers
// that are not finite.
type Diagnosing interface {
	// Diagnose is what is wrong with the numbers of a report, by Report, and what to
	// do about it, as a clause; "" if nothing is. It allocates nothing then.
	Diagnose(report []float64) string
}

// Steadying has a setting with which its losses do not jump.
type Steadying interface {
	// Steadier is its flag, with dashes; "" if it is on, or of no use.
	Steadier() string
}

// Bilevel has an upper level that is differentiated through an unrolled lower
// one.
type Bilevel interface {
	// Hypergradient builds the upper loss J(θ, φᴺ(θ)) of the model's variables θ
	// and φ⁰, as OutputUpper (a scalar, the mean over all ranks), and its gradient
	// in θ, for each variable an output GradientOf(its name). It assigns nothing.
	// It takes the inputs of Step.
	Hypergradient(HyperOptions) (*graph.Graph, []nn.Variable, error)
}

// HyperOptions say how a hypergradient is computed.
type HyperOptions struct {
	World, Batch int         // ranks, and samples on each
	DType        graph.DType // F64 for checks by finite differences
	Inner        Inner
}

// Inner says what ranks know of each other in the unrolled steps. All but
// AllReduced are wrong, and are there to show how wrong.
type Inner uint8

const (
	// AllReduced averages each inner gradient over ranks, and so its cotangent.
	AllReduced Inner = iota
	// NoAdjoint averages inner gradients, but not their cotangents.
	NoAdjoint
	// Local steps each rank's own φ on its own gradients.
	Local
)

// Outputs of these graphs.
const (
	OutputRecon     = "recon"  // of the shape of the images
	OutputLogit     = "logit"  // (n, 1): ranks like the energy, without ties
	OutputEnergy    = "energy" // (n, 1)
	OutputCode      = "code"
	OutputScore     = "score"
	OutputFisher    = "fisher"
	OutputGap       = "gap"
	OutputLoss      = "loss"
	OutputUpper     = "upper"
	OutputEstimate  = "estimate"
	OutputTruth     = "truth"
	OutputTold      = "told"
	OutputBlind     = "blind"
	OutputBlindTold = "blind-told"
)

// GradientOf is the output that is the gradient of a variable.
func GradientOf(variable string) string { return "gradient of " + variable }
