package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/eval/inception"
	"ebtrain/trainer/trained"
)

// comparing is a measure that compares samples with data. All that are asked for
// are taken together, of one set after the other.
func comparing(name string) measure {
	return measure{
		name: name, trains: true, asked: true, samples: true,
		lacks: func(e *evaluation) string { return e.lacksComparison(name) },
		take: func(e *evaluation, _ context.Context, _ *report) error {
			e.compare = append(e.compare, name)
			return nil
		},
	}
}

// lacksComparison says what the samples, or the data, lack for a measure.
func (e *evaluation) lacksComparison(name string) string {
	switch {
	case e.trained != nil && lacksSamples(e) != "":
		return lacksSamples(e)
	case trained.Sentences(e.takes):
		return "its samples are neither pictures nor points"
	case name == compare.IS && !trained.Pictures(e.takes):
		return "it is of pictures, and its samples are points"
	case trained.Pictures(e.takes) && sizeOf(e.takes).Validate() != nil:
		return sizeOf(e.takes).Validate().Error()
	case name == compare.IS && e.told == nil && e.published == nil:
		return "it is of a classifier, and neither --classifier nor --inception is given"
	case name != compare.Frechet:
		return ""
	}
	if n, err := e.size(e.o.data, e.trainSplit()); err != nil || n < int64(e.leastFrechet()) {
		return e.tooFew(e.o.data+"/"+e.trainSplit(), n, err)
	}
	if e.trained != nil {
		return ""
	}
	split, err := splitOf(e.o.samplesFrom)
	if err != nil {
		return err.Error()
	}
	if n, err := e.size(e.o.samplesFrom, split); err != nil || n < int64(e.leastFrechet()) {
		return e.tooFew(e.o.samplesFrom+"/"+split, n, err)
	}
	return ""
}

// leastFrechet is how many samples a Fréchet distance wants.
func (e *evaluation) leastFrechet() int {
	if trained.Points(e.takes) {
		return compare.LeastFrechetOf(sizeOf(e.takes))
	}
	return compare.LeastFrechet
}

func (e *evaluation) tooFew(of string, n int64, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s holds %s, and a Fréchet distance wants at least %d", of, trained.Count(n, trained.Noun(e.takes)), e.leastFrechet())
}

// ofPictures reports a network of pictures, which a flag names, where there are none.
func (e *evaluation) ofPictures(flag string) error {
	if trained.Pictures(e.takes) {
		return nil
	}
	return fmt.Errorf("--%s is a network for pictures, and %s has %s: leave it out", flag, e.what(), trained.Noun(e.takes))
}

// openClassifier reads --classifier, if there is one.
func (e *evaluation) openClassifier() error {
	if e.o.classifier == "" {
		return nil
	}
	if err := e.ofPictures("classifier"); err != nil {
		return err
	}
	src, err := e.open(e.o.data, e.trainSplit())
	if err != nil {
		return err
	}
	n, err := feature.Load(e.o.classifier, sizeOf(e.takes), src.Digest())
	if err != nil {
		return fmt.Errorf("--classifier: %w", err)
	}
	e.told = &n
	return nil
}

// openInception reads --inception, if there is one.
func (e *evaluation) openInception() error {
	if e.o.inception == "" {
		return nil
	}
	if err := e.ofPictures("inception"); err != nil {
		return err
	}
	n, err := inception.Load(e.o.inception, sizeOf(e.takes))
	if err != nil {
		return fmt.Errorf("--inception: %w", err)
	}
	e.published = &n
	return nil
}

// compareSets compares samples, the floor and the controls with training pictures.
func (e *evaluation) compareSets(ctx context.Context, r *report) (err error) {
	reference, err := e.real(ctx, "training "+trained.Noun(e.takes), e.o.data, e.trainSplit(), e.o.reference)
	if err != nil {
		return err
	}
	cache := e.featureCache()
	compared, makers := int64(0), e.makers()
	tell := func(what string) { e.show.Progress(what, "sets/s", compared, int64(len(makers))) }
	j, err := compare.New(ctx, compare.Config{
		Backend: e.backend, Comm: e.comm, Size: sizeOf(e.takes), Measures: e.compare, Classifier: e.told, Published: e.published,
		Seed: e.o.seed, Batch: e.o.batch, Threads: e.threads, Cache: cache, Tell: tell,
	}, reference.Set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	c := e.newComparison(reference.n)
	asMany := e.noMoreThan(reference.n)
	if trained.Pictures(e.takes) {
		c.Networks = feature.Ensemble
	}
	for _, name := range setNames() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if makers[name] == nil {
			continue
		}
		set, note, err := makers[name](ctx, reference)
		if err != nil {
			return err
		}
		if note != "" {
			c.Notes = append(c.Notes, note)
		}
		if set.X == nil {
			continue
		}
		values, notes, err := j.Of(ctx, set)
		if err != nil {
			return err
		}
		n := len(set.X) / e.takes.Shape.Len()
		if name == setSamples { // the first of all
			c.Notes = append(c.Notes, asMany(n)...)
		}
		c.keep(name, n, values)
		c.Notes = append(c.Notes, notes...)
		compared++
	}
	c.fewer(e.o, e.leastFrechet(), trained.Noun(e.takes))
	c.judge()
	if trained.Points(e.takes) {
		c.ofPoints()
	}
	r.Quality = c
	return nil
}

// noMoreThan makes sets of n samples, as many as there are to compare with, where --samples is
// more: what depends on the number of samples compares sets of equal numbers only. The function
// that it returns makes them as large as the samples that there are, which may be fewer, and
// says what is the reason of their number.
func (e *evaluation) noMoreThan(n int) (asMany func(samples int) (notes []string)) {
	asked := e.o.samples
	e.o.samples = min(asked, n)
	return func(samples int) (notes []string) {
		if e.o.samples = samples; samples == n && n < asked {
			noun := trained.Noun(e.takes)
			notes = []string{fmt.Sprintf("sets hold %s in place of %d (--samples), since that is how many training %s there are to compare with", trained.Count(int64(n), noun), asked, noun)}
		}
		return notes
	}
}

// featureCache is where features of real pictures are kept: nowhere, which is said, where
// there is no folder for that.
func (e *evaluation) featureCache() feature.Cache {
	said := false
	c := feature.Cache{Dir: e.o.cache, Say: func(err error) {
		if no := errors.Is(err, feature.ErrNotKept); !no || !said { // once is enough of a folder that takes none
			e.log.Warn("features of real pictures (--feature-cache)", "problem", err.Error())
			said = said || no
		}
	}}
	switch e.o.cache {
	case noCache:
		c.Dir = ""
	case "":
		base, err := os.UserCacheDir()
		if err != nil {
			c.Say(fmt.Errorf("%w: %w: name a folder, or %s", feature.ErrNotKept, err, noCache))
			break
		}
		c.Dir = filepath.Join(base, "ebtrain", "features")
	}
	return c
}

// comparison is what measures say of the sets.
type comparison struct {
	Reference int             `json:"reference"`          // training samples that were compared with
	Of        string          `json:"of"`                 // their data set and split
	Networks  int             `json:"networks,omitempty"` // random ones
	Sizes     map[string]int  `json:"sizes"`              // samples of each set
	Rows      []comparisonRow `json:"rows"`
	Notes     []string        `json:"notes,omitempty"`
}

// comparisonRow is one number of each set.
type comparisonRow struct {
	Name     string             `json:"name"`
	Title    string             `json:"title"`
	Better   compare.Better     `json:"better"`
	Samples  *float64           `json:"samples,omitempty"`
	Spread   float64            `json:"spread,omitempty"` // of the samples' number over networks, or parts
	Floor    *float64           `json:"floor,omitempty"`
	Controls map[string]float64 `json:"controls,omitempty"`
	// Blind are the controls that come out no worse than the samples: the row does not see
	// what is wrong with them, or the samples are that bad. Beside a floor it is known which.
	Blind []string `json:"blind,omitempty"`

	few bool // the floor holds too few pictures to be compared with in this row
}

// newComparison is one without rows, beside n samples of the split that was trained on.
func (e *evaluation) newComparison(n int) *comparison {
	return &comparison{Reference: n, Of: e.o.data + "/" + e.trainSplit(), Sizes: map[string]int{}}
}

// ofPoints has titles speak of points.
func (c *comparison) ofPoints() {
	for i, row := range c.Rows {
		c.Rows[i].Title = strings.ReplaceAll(row.Title, "picture", "point")
	}
}

// sets are those of a comparison.
func (c *comparison) sets() (names []string) {
	for _, name := range setNames() {
		if c.Sizes[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// keep adds the numbers of a set.
func (c *comparison) keep(set string, n int, values []compare.Value) {
	c.Sizes[set] = n
	for _, v := range values {
		row := c.row(v.Row)
		switch set {
		case setSamples:
			row.Samples, row.Spread = &v.Value, v.Spread
		case setFloor:
			row.Floor = &v.Value
		default:
			row.Controls[set] = v.Value
		}
	}
}

// row is the row of that name, made if there is none.
func (c *comparison) row(name string) *comparisonRow {
	for i := range c.Rows {
		if c.Rows[i].Name == name {
			return &c.Rows[i]
		}
	}
	row := comparisonRow{Name: name, Controls: map[string]float64{}}
	for _, r := range append(compare.Rows(), fluencyRows()...) {
		if r.Name == name {
			row.Title, row.Better = r.Title, r.Better
		}
	}
	c.Rows = append(c.Rows, row)
	return &c.Rows[len(c.Rows)-1]
}

// judge says which controls a row does not tell from the samples.
func (c *comparison) judge() {
	for i := range c.Rows {
		row := &c.Rows[i]
		for _, name := range c.sets() {
			v, ok := row.Controls[name]
			if ok && row.Samples != nil && !row.Better.Beats(*row.Samples, v) {
				row.Blind = append(row.Blind, name)
			}
		}
	}
}

// fewer leaves the floor out of the verdict of rows that depend on the number of samples, which
// are called noun, if it holds fewer than the sets beside it, and says so.
func (c *comparison) fewer(o options, leastFrechet int, noun string) {
	floor, others := c.Sizes[setFloor], c.Sizes[setNoise]
	var titles []string
	for _, r := range compare.Rows() {
		i := slices.IndexFunc(c.Rows, func(row comparisonRow) bool { return row.Name == r.Name && row.Floor != nil })
		if i >= 0 && compare.Counts(r.Measure) && floor < others {
			c.Rows[i].few, titles = true, append(titles, r.Title)
		}
	}
	if len(titles) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("the floor has %s and the sets beside it %d: it is in no verdict of %s, which depend on their number: give %s",
			trained.Count(int64(floor), noun), others, strings.Join(titles, "; "), o.ofFewer(floor, leastFrechet)))
	}
}

// ofFewer are the flags that measure the same of n samples, but for a Fréchet distance, if they are
// too few for that.
func (o options) ofFewer(n, leastFrechet int) string {
	flags := fmt.Sprintf("--samples %d", n)
	if n < leastFrechet && o.asks(compare.Frechet) {
		rest := slices.DeleteFunc(strings.Split(o.measures, ","), func(name string) bool { return name == compare.Frechet })
		flags += " --measures " + strings.Join(rest, ",")
	}
	return flags
}

// addQuality adds the table of the comparison.
func (r *report) addQuality(add adder) {
	c := r.Quality
	if c == nil {
		return
	}
	names := c.sets()
	add("beside %s of %s\n", trained.Count(int64(c.Reference), r.noun), c.Of) // a line of its own: paths are long
	add("\t\t%s\n%s\t", strings.Join(names, "\t"), r.noun)
	for _, name := range names {
		add("\t%d", c.Sizes[name])
	}
	add("\n")
	for _, row := range c.Rows {
		add("%s\t%s", row.Title, row.Better)
		for _, name := range names {
			add("\t%s", row.text(name))
		}
		add("\n")
	}
	if slices.ContainsFunc(c.Rows, func(row comparisonRow) bool { return row.Spread > 0 }) {
		add("± is between the random networks, of an inception score between parts of the %s: it is no error of the number\n", r.noun)
	}
	c.addVerdict(add, r.noun)
	for _, note := range c.Notes {
		add("%s\n", note)
	}
}

// text is the number of a set.
func (r comparisonRow) text(set string) string {
	v, ok := r.Controls[set]
	switch {
	case set == setSamples && r.Samples != nil && r.Spread > 0:
		return digits(*r.Samples, 4) + " ± " + digits(r.Spread, 2)
	case set == setSamples && r.Samples != nil:
		return digits(*r.Samples, 4)
	case set == setFloor && r.Floor != nil:
		return digits(*r.Floor, 4)
	case ok:
		return digits(v, 4)
	}
	return "–"
}

// digits is v to n digits, and whole where it has more: 190, not 1.9e+02.
func digits(v float64, n int) string {
	text := fmt.Sprintf("%.*g", n, v)
	if strings.Contains(text, "e+") && math.Abs(v) < 1e7 { // 99.7 to 2 digits has three, too
		return fmt.Sprintf("%.0f", v)
	}
	return text
}
