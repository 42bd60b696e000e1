package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"ebtrain/trainer/eval"
	"ebtrain/trainer/trained"
)

// report is what evaluate found.
type report struct {
	Run    string `json:"run"`
	Step   int64  `json:"step"`
	EMA    bool   `json:"ema,omitempty"` // weights are averages over the steps
	Data   string `json:"data"`
	Split  string `json:"split"`
	Images int    `json:"images"` // samples of the split that were measured

	RMSEBatch     *float64 `json:"rmse,omitempty"`            // batch statistics
	RMSERunning   *float64 `json:"rmse_running,omitempty"`    // running statistics
	RMSEMeanImage *float64 `json:"rmse_mean_image,omitempty"` // baseline

	Energies []energies `json:"energies,omitempty"`
	AUROC    []auroc    `json:"auroc,omitempty"`
	Picture  string     `json:"picture,omitempty"`

	LL           *float64    `json:"ll,omitempty"`            // mean log-likelihood, nats
	LLTable      *float64    `json:"ll_table,omitempty"`      // in the units of the table, where columns are scaled
	LogZ         *logZ       `json:"log_z,omitempty"`         // of its normaliser
	Fisher       *float64    `json:"fisher,omitempty"`        // but for the data's constant
	Critic       *float64    `json:"critic,omitempty"`        // Fisher divergence that a critic estimates
	Truth        *float64    `json:"truth,omitempty"`         // and the true one, of data that are N(0, I)
	Loss         *float64    `json:"loss,omitempty"`          // that the weights descend
	PosteriorGap *float64    `json:"posterior_gap,omitempty"` // divergence of the approximate posterior
	Density      *densityMap `json:"density,omitempty"`

	Sentences    *sentences    `json:"sentences,omitempty"`
	Recollection *recollection `json:"recollection,omitempty"` // of latents of sentences

	// Accuracies of linear machines, from 0 to 1.
	Probe                *float64 `json:"probe,omitempty"`           // on posterior means
	ProbeUntrained       *float64 `json:"probe_untrained,omitempty"` // on those before training
	ProbeRaw             *float64 `json:"probe_raw,omitempty"`       // on the samples' values
	ProbeScaled          *float64 `json:"probe_scaled,omitempty"`    // on posterior means, standardised
	ProbeUntrainedScaled *float64 `json:"probe_untrained_scaled,omitempty"`
	ProbeSamples         int64    `json:"probe_samples,omitempty"` // that each was trained on

	Quality *comparison `json:"quality,omitempty"`
	Lacking []string    `json:"lacking,omitempty"` // what was asked for and cannot be had

	SamplesFrom string `json:"samples_from,omitempty"` // where the samples are from, if from no model

	noun string // what samples are called
}

// energies are the energies of one kind of pictures.
type energies struct {
	Of     string  `json:"of"`
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	SD     float64 `json:"sd"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	// NotFinite are those that are NaN or infinite, which are in none of the numbers above.
	NotFinite int `json:"not_finite,omitempty"`
}

// auroc says how well the energy tells data from something else.
type auroc struct {
	Against string  `json:"against"`
	Value   float64 `json:"value"`
}

func (r *report) keepEnergies(of string, e []float64) error {
	d, err := eval.Describe(e)
	if err != nil {
		return fmt.Errorf("energies of %s: %w", of, err)
	}
	row := energies{Of: of, N: d.N, Mean: d.Mean, SD: d.SD, Min: d.Min, Max: d.Max, NotFinite: d.NonFinite}
	for _, q := range d.Quantiles {
		if q.P == 0.5 {
			row.Median = q.Value
		}
	}
	r.Energies = append(r.Energies, row)
	return nil
}

// keepAUROC compares scores −E by the logits, which rank as energies do.
func (r *report) keepAUROC(against string, data, other []float64) error {
	a, err := eval.AUROC(negated(data), negated(other))
	if err != nil {
		return fmt.Errorf("AUROC against %s: %w", against, err)
	}
	r.AUROC = append(r.AUROC, auroc{against, a})
	return nil
}

func negated(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = -v
	}
	return y
}

// writeJSON writes one object in a line.
func (r *report) writeJSON(w io.Writer) error {
	b, err := appendJSON(nil, reflect.ValueOf(r))
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// tellDiverged writes the object that takes a report's place, where that is because the
// model's numbers are not finite: another program need not read what people are told.
func (e *evaluation) tellDiverged(err error, stdout io.Writer) error {
	if _, ok := errors.AsType[*eval.NotFiniteError](err); !e.o.json || !ok {
		return nil
	}
	return json.NewEncoder(stdout).Encode(map[string]string{"diverged": err.Error()})
}

// adder adds a line to a table, or a part of one.
type adder func(format string, args ...any)

func (r *report) writeTable(out io.Writer) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	what := r.SamplesFrom
	if r.Run != "" {
		what = fmt.Sprintf("%s after %s", r.Run, trained.After(r.Step, r.EMA))
	}
	_, _ = fmt.Fprintf(w, "%s, %s of %s/%s\n", what, trained.Count(int64(r.Images), r.noun), r.Data, r.Split) // text takes everything
	for _, part := range []func(adder){r.addReconstructions, r.addDivergences, r.addSentences, r.addProbe, r.addEnergies, r.addAUROCs, r.addPictures, r.addQuality, r.addLacking} {
		var b strings.Builder
		part(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })
		if b.Len() > 0 {
			_, _ = io.WriteString(w, "\n"+b.String()) // text takes everything
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (r *report) addReconstructions(add adder) {
	if r.RMSEBatch != nil {
		add("RMSE of reconstruction\t%.4f\t(batch statistics)\n", *r.RMSEBatch)
		add("\t%.4f\t(running statistics)\n", *r.RMSERunning)
		add("RMSE of the mean image\t%.4f\n", *r.RMSEMeanImage)
	}
}

// addDivergences adds what is known of the model's density.
func (r *report) addDivergences(add adder) {
	if r.LL != nil {
		add("log-likelihood\t%.5g\t(log Z %v)\n", *r.LL, r.LogZ)
		if more := r.LogZ.missed(); more > 0 {
			add("\t%.5g\tas chains that begin at the data have it: the others never reach where these are, so the truth is below the first, and near this only if these reach all of the model\n", *r.LL-more)
		}
	}
	if r.LLTable != nil {
		add("\t%.5g\tin the units of the table, whose columns are standardised\n", *r.LLTable)
	}
	if r.Fisher != nil {
		add("Fisher divergence\t%.6g\t(but for the data's constant)\n", *r.Fisher)
	}
	if r.Critic != nil {
		add("Fisher divergence\t%.6g\tas the critic estimates it\n", *r.Critic)
		add("\t%.6g\tin truth, if the data are N(0, I)\n", *r.Truth)
	}
	if r.Loss != nil {
		add("loss of these samples\t%.6g\n", *r.Loss)
	}
	if r.PosteriorGap != nil {
		add("posterior's divergence\t%.5g\n", *r.PosteriorGap)
	}
}

// addProbe adds how well classes are told.
func (r *report) addProbe(add adder) {
	if r.Probe != nil {
		add("accuracy of a linear machine\t%.4f\ton posterior means (trained on %d %s)\n", *r.Probe, r.ProbeSamples, r.noun)
		add("\t%.4f\ton those of the untrained posterior\n", *r.ProbeUntrained)
		add("\t%.4f\ton raw values\n", *r.ProbeRaw)
		add("\t%.4f\ton posterior means, standardised\n", *r.ProbeScaled)
		add("\t%.4f\ton those of the untrained posterior, standardised\n", *r.ProbeUntrainedScaled)
	}
}

func (r *report) addEnergies(add adder) {
	if len(r.Energies) > 0 {
		add("energy of\t%s\tmean\tsd\tmin\tmedian\tmax\n", r.noun)
	}
	for _, e := range r.Energies {
		add("%s\t%d\t%.5g\t%.3g\t%.5g\t%.5g\t%.5g", e.Of, e.N, e.Mean, e.SD, e.Min, e.Median, e.Max)
		if e.NotFinite > 0 {
			add("\tand %d that are not finite", e.NotFinite)
		}
		add("\n")
	}
}

func (r *report) addAUROCs(add adder) {
	for _, a := range r.AUROC {
		add("AUROC against %s\t%.4f\n", a.Against, a.Value)
	}
}

func (r *report) addPictures(add adder) {
	if r.Picture != "" {
		add("inputs above their reconstructions: %s\n", r.Picture)
	}
	if d := r.Density; d != nil && d.Picture != "" {
		add("density (%.4f of it is shown) beside the data: %s\n", d.Inside, d.Picture)
	}
}

// addLacking adds what was asked for and is not there.
func (r *report) addLacking(add adder) {
	for _, line := range r.Lacking {
		add("%s\n", line)
	}
}
