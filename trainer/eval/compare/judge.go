package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/eval/quality"
)

// LeastFrechet is how many samples a Fréchet distance wants: with fewer it says more
// of their number than of them.
const LeastFrechet = 2048

// leastPoints is LeastFrechet of points of few values.
const leastPoints = 100

// LeastFrechetOf is how many samples of a size a Fréchet distance wants. That of points is of
// their values alone, not of hundreds of features: ten for each are enough.
func LeastFrechetOf(s feature.Size) int {
	if s.Vector() {
		return min(LeastFrechet, max(leastPoints, 10*s.Len()))
	}
	return LeastFrechet
}

// Config is how sets are judged. Where Size is that of vectors, sets are points, and all
// measures are of their values, in units of the reference's standard deviations: no network
// has a part in them but the two-sample classifier.
type Config struct {
	Backend    exec.Backend
	Comm       collective.Comm // of the ranks, in host memory; nil in a world of one
	Size       feature.Size
	Measures   []string
	Classifier *feature.Net // nil: there is none
	Published  *feature.Net // of which published numbers are; nil: there is none
	Seed       uint64       // of subsets, patches, directions and the two-sample classifier
	Batch      int          // pictures at a time
	Threads    int          // of this rank, for what is not computed by Backend; less than 1 is 1
	Cache      feature.Cache
	// Tell says what is done; may be nil.
	Tell func(what string)
}

// Set is pictures that are judged.
type Set struct {
	Name string
	X    []float32 // (n, C, H, W) in [−1, 1]
	// Key names the pictures, so that their features can be kept; "" keeps none.
	Key string
}

// Judge judges sets beside a reference.
type Judge struct {
	c         Config
	first     bool // of the ranks
	mul       *feature.Multiplier
	spaces    []*space
	scores    []scorer
	reference Set
	scale     scale                     // of points
	swd       map[int]quality.Projected // of the reference's first pictures, by their number
	pixels    quality.Matrix            // of the reference; empty unless neighbours are asked for
}

// space is the features of one network.
type space struct {
	*feature.Extractor           // nil: of points, which are their own features
	suffix             string    // of the names of its rows
	mean, sd           []float64 // of the reference; nil: features are taken as they are
	reference          quality.Matrix
	gaussian           quality.Gaussian
	manifold           map[int]*quality.Manifold // of the reference's first pictures
}

// scorer tells the classes of an inception score, the row of that name.
type scorer struct {
	row string
	*feature.Extractor
}

// New prepares a judge: the reference's features are computed, or taken from the
// cache.
func New(ctx context.Context, c Config, reference Set) (j *Judge, err error) {
	if !c.Size.Vector() {
		if err := c.Size.Validate(); err != nil {
			return nil, err
		}
	}
	if c.Tell == nil {
		c.Tell = func(string) {}
	}
	j = &Judge{c: c, first: c.Comm == nil || c.Comm.Rank() == 0, mul: feature.NewMultiplier(c.Backend), reference: reference,
		swd: map[int]quality.Projected{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.Close())
		}
	}()
	if n, least := j.count(reference), LeastFrechetOf(c.Size); j.asked(Frechet) && n < least {
		return j, fmt.Errorf("the reference holds %s, and a Fréchet distance wants at least %d", j.samples(n), least)
	}
	if c.Size.Vector() {
		if err := finite(reference); err != nil {
			return j, err
		}
		j.scale = scaleOf(j.matrix(reference.X, j.count(reference)))
		j.reference.X = j.scale.of(reference.X)
	}
	if j.asked(Frechet) || j.asked(KID) || j.asked(PRDC) {
		if err := j.openSpaces(ctx); err != nil {
			return j, err
		}
	}
	if j.asked(IS) {
		if err := j.openScores(); err != nil {
			return j, err
		}
	}
	if j.first && j.asked(Neighbours) {
		j.pixels = j.matrix(j.reference.X, j.count(reference))
	}
	return j, nil
}

func (j *Judge) asked(measure string) bool { return slices.Contains(j.c.Measures, measure) }

// count is how many pictures a set holds.
func (j *Judge) count(s Set) int { return len(s.X) / j.c.Size.Len() }

// samples are so many, in words: points, where a picture has no sides.
func (j *Judge) samples(n int) string { return english.Plural(n, j.noun(), "") }

// noun is what one sample is called.
func (j *Judge) noun() string {
	if j.c.Size.Vector() {
		return "point"
	}
	return "picture"
}

// openScores compiles those that tell classes.
func (j *Judge) openScores() error {
	if j.c.Classifier == nil && j.c.Published == nil {
		return errors.New("an inception score wants a classifier, or the network of published ones")
	}
	for row, net := range map[string]*feature.Net{"is": j.c.Classifier, "is" + ofPublished: j.c.Published} {
		if net == nil {
			continue
		}
		e, err := feature.NewProbabilities(j.c.Backend, *net, j.c.Batch)
		if err != nil {
			return err
		}
		j.scores = append(j.scores, scorer{row, e})
	}
	slices.SortFunc(j.scores, func(a, b scorer) int { return strings.Compare(a.row, b.row) }) // equal on all ranks
	return nil
}

// openSpaces computes the reference's features in all networks.
func (j *Judge) openSpaces(ctx context.Context) error {
	if j.c.Size.Vector() {
		return j.openValues()
	}
	for i := range feature.Ensemble {
		if err := j.openSpace(ctx, feature.Random(i+1, j.c.Size), ""); err != nil {
			return err
		}
	}
	if j.c.Classifier != nil {
		if err := j.openSpace(ctx, *j.c.Classifier, ofClassifier); err != nil {
			return err
		}
	}
	if j.c.Published != nil {
		return j.openSpace(ctx, *j.c.Published, ofPublished)
	}
	return nil
}

// openSpace computes the reference's features in one network.
func (j *Judge) openSpace(ctx context.Context, n feature.Net, suffix string) error {
	e, err := feature.NewExtractor(j.c.Backend, n, j.c.Batch)
	if err != nil {
		return err
	}
	s := &space{Extractor: e, suffix: suffix, manifold: map[int]*quality.Manifold{}}
	j.spaces = append(j.spaces, s)
	features, err := j.features(ctx, s, j.reference)
	if err != nil || !j.first {
		return err
	}
	s.reference = features
	if suffix != ofPublished {
		s.standardise(features)
	}
	if j.asked(Frechet) {
		s.gaussian, err = quality.FitGaussian(s.reference)
	}
	return err
}

// features are those of a set, as the network gives them.
func (j *Judge) features(ctx context.Context, s *space, set Set) (quality.Matrix, error) {
	if s.Extractor == nil {
		return j.matrix(set.X, j.count(set)), nil
	}
	compute := func() (quality.Matrix, error) {
		j.c.Tell(fmt.Sprintf("%s: features by %s", set.Name, s.Name))
		return s.Of(ctx, j.c.Comm, set.X)
	}
	if set.Key == "" {
		return compute()
	}
	digits := ""
	if j.c.Cache.Dir != "" {
		var err error
		if digits, err = s.Digits(ctx); err != nil {
			return quality.Matrix{}, err
		}
	}
	return j.c.Cache.Features(ctx, j.c.Comm, j.count(set), s.Net, set.Key, digits, compute)
}

// standardise finds mean and standard deviation of each feature of the reference.
// Features are measured in these, so that networks' numbers compare; those of
// published numbers are not.
func (s *space) standardise(reference quality.Matrix) {
	of := scaleOf(reference)
	s.mean, s.sd = of.mean, of.sd
	s.reference = s.standard(reference)
}

// standard are features in units of the reference, or as they are.
func (s *space) standard(m quality.Matrix) quality.Matrix {
	if s.mean == nil {
		return m
	}
	out := quality.NewMatrix(m.N, m.D)
	for i := range m.N {
		to := out.Row(i)
		for k, v := range m.Row(i) {
			to[k] = (v - s.mean[k]) / s.sd[k]
		}
	}
	return out
}

// matrix are the first n of pictures as rows.
func (j *Judge) matrix(x []float32, n int) quality.Matrix {
	m := quality.NewMatrix(n, j.c.Size.Len())
	for i := range m.X {
		m.X[i] = float64(x[i])
	}
	return m
}

// Close releases the programs.
func (j *Judge) Close() error {
	errs := []error{j.mul.Close()}
	for _, s := range j.spaces {
		if s.Extractor != nil {
			errs = append(errs, s.Close())
		}
	}
	for _, s := range j.scores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
