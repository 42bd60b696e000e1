package catalogue

import (
	"maps"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// snliData are sentences of SNLI: of 5,000 of them 4,000 are trained on, and their
// vocabulary is the words that occur twice there.
func snliData() *plan.DataSet {
	return &plan.DataSet{
		Name: "snli", Sentences: true,
		Make:   []string{"text", "--lowercase", "--split-punctuation", "--min-count", "2", "--val", "500", "--test", "500"},
		Source: "a file of 5,000 sentences of SNLI, one a line (the corpus: https://nlp.stanford.edu/projects/snli/)",
	}
}

// lebmText is the latent-space prior of sentences, beside a fixed one and a language
// model without latents.
func lebmText() plan.Experiment {
	var (
		ofLatents  = []string{"nll-given", "nll-blind", "collapsed", "norm-prior-last", "recon"}
		ofPrior    = []string{"forward-normal", "reverse-normal"}
		ofLanguage = []string{"nll"}
	)
	annealed := func(name string, flags map[string]string, lacks []string) plan.Row {
		all := map[string]string{"posterior-annealed": "true", "posterior-temperature": "0.2"}
		maps.Copy(all, flags)
		return plan.Row{Name: name, Preset: "lebm-snli", Flags: all, Lacks: lacks}
	}
	of := func(row, measure string) judge.Value { return judge.Value{Row: row, Measure: measure} }
	// Latents that are used tell far more of a sentence than its own words do.
	const far = 0.8
	return plan.Experiment{
		Name: "lebm-text",
		About: "Sentences of SNLI by the latent-space energy-based prior, by a fixed Gaussian prior with the same decoder, and by a language model, an LSTM of the decoder's size. " +
			"Given latents inferred from it, a sentence is far more likely than by the language model; where it is not, the latents collapsed. With the published chain, of equal steps, they do after so few updates; " +
			"the annealed one of a sister paper's program, long steps and little noise at first, is what is claimed of. " +
			"A word of samples is less perplexing to 5-grams of the training sentences with latents from the learnt prior than with latents from N(0, I) through the same decoder. " +
			"Perplexities are by 5-grams of modified Kneser–Ney smoothing; `evaluate --judge`, of a run of the row lstm, has them by the LSTM too.",
		Data:     snliData(),
		Seeds:    []uint64{1, 2, 3},
		Flags:    map[string]string{"embed": "64", "hidden": "64", "batch": "32", "steps": "5000"},
		Evaluate: map[string]string{"split": "test", "samples": "4000"}, // as many as are trained on
		Sample:   map[string]string{"n": "10"},
		Curves:   []plan.Curve{{Name: "recon", Loss: "recon"}},
		Columns: []string{
			"nll", "nll-given", "nll-blind", "collapsed",
			"forward", "forward-normal", "forward-floor", "forward-unigram",
			"reverse", "reverse-normal", "reverse-floor",
			"norm-prior-last", "step-ms", "cpu-s",
		},
		Rows: []plan.Row{
			{Name: "ebm", Preset: "lebm-snli", Lacks: ofLanguage},
			{Name: "gaussian", Preset: "lebm-snli", Flags: map[string]string{"prior": "gaussian"}, Lacks: append(ofPrior, ofLanguage...)},
			annealed("ebm-annealed", nil, ofLanguage),
			annealed("gaussian-annealed", map[string]string{"prior": "gaussian"}, append(ofPrior, ofLanguage...)),
			{Name: "lstm", Preset: "lm-snli", Lacks: append(ofLatents, ofPrior...)},
		},
		Checks: []judge.Check{
			judge.Bound{Of: judge.Rows("collapsed", "ebm-annealed", "gaussian-annealed"), Lo: 0, Hi: 0},
			judge.Bound{Of: judge.Rows("collapsed", "ebm", "gaussian"), Lo: 1, Hi: 1}, // known bad: it is noticed
			judge.Ratio{Of: of("ebm-annealed", "nll-given"), To: of("lstm", "nll"), Most: far},
			judge.Ratio{Of: of("gaussian-annealed", "nll-given"), To: of("lstm", "nll"), Most: far},
			judge.Order{Rising: []judge.Value{of("ebm-annealed", "forward"), of("ebm-annealed", "forward-normal")}},
			judge.Order{Rising: judge.Rows("forward", "ebm-annealed", "gaussian-annealed")},
			judge.Order{Rising: []judge.Value{of("ebm-annealed", "forward"), of("ebm-annealed", "forward-unigram")}},
			judge.Order{Rising: []judge.Value{of("lstm", "forward"), of("lstm", "forward-unigram")}},
			judge.Bound{Of: judge.Rows("norm-prior-last", "ebm", "ebm-annealed"), Lo: 0.3, Hi: 3},
		},
		Figures: []plan.Figure{
			{File: "recon", Title: "Loss of the generator", X: "steps", Y: "−log p(x|z) of a sentence, nats", Curve: "recon"},
		},
		Pictures: []plan.Picture{{Title: "Ten samples", Glob: "samples.txt"}},
	}
}
