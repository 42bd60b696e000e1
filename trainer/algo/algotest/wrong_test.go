package algotest

import (
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// The checks find what is wrong: each of these is the toy with one mistake.

func good() toy.Config { return toy.Config{C: 2, H: 1, W: 3, LR: 0.05} }

// unfed has a Feeder that fills nothing.
type unfed struct{ toy.Config }

func (unfed) Feeder(exec.Program) func(int64, int) { return func(int64, int) {} }

// longer has a column that no step reports.
type longer struct{ toy.Config }

func (m longer) Report() []algo.Column { return append(m.Config.Report(), algo.Column{Name: "more"}) }

// unstoppable has no column for the stop.
type unstoppable struct{ toy.Config }

func (unstoppable) Report() []algo.Column { return algo.Columns([]string{"a", "b", "c"}, "a") }

// another is a step that adds a mean over samples to its one weight.
type another struct {
	toy.Config
	loss func(c *nn.Context, images, key graph.ID) graph.ID
}

func (m another) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	c := nn.NewContext(nn.Train, world)
	images := c.Input(algo.InputImages, graph.T(graph.F32, batch, m.C, m.H, m.W))
	w := c.Weight("w", graph.D(), nn.Ones)
	loss := m.loss(c, images, c.Input(algo.InputKey, graph.KeyType))
	algo.WriteReport(c, []graph.ID{loss, c.Input(algo.InputStop, graph.T(graph.F32))}, []graph.ID{c.Zeros(graph.T(graph.F32))})
	if world > 1 {
		loss = c.AllReduce(collective.Mean, "w", loss)[0]
	}
	c.Set("w", c.Add(w, loss))
	g, err := c.Commit()
	return g, c.Variables(), err
}

func (another) Feeder(exec.Program) func(int64, int) { return func(int64, int) {} }

// noise is the mean of the images with a draw for each.
func noise(c *nn.Context, images, key graph.ID) graph.ID {
	return c.Mean(c.Mul(images, c.Draw(key, graph.Normal, philox.Perturb, 0, c.Type(images))))
}

// timed is noise that a clock adds to.
func timed(c *nn.Context, images, key graph.ID) graph.ID {
	return c.Add(noise(c, images, key), c.Sum(c.Input("adam.w", optim.ScheduleType)))
}

// clocked has a clock that runs so many steps with each.
type clocked struct {
	another
	by int64
}

func (m clocked) Feeder(p exec.Program) func(int64, int) {
	feed := optim.Adam{Name: "w", LR: 1, Beta2: 0.9, Decay: 1}.Feeder(p)
	return func(step int64, epoch int) { feed(m.by*step, epoch) }
}

// byRank names draws by the place among the rank's own samples.
func byRank(c *nn.Context, images, key graph.ID) graph.ID {
	own := c.Concat(0, c.Slice(key, 0, 0, 2, 1), c.Zeros(graph.T(graph.I64, 1)))
	return noise(c, images, own)
}

// noisy has two draws of one name, of different shapes.
func noisy(c *nn.Context, images, key graph.ID) graph.ID {
	other := graph.T(graph.F32, c.Batch(images), 1)
	return c.Add(noise(c, images, key), c.Mean(c.Draw(key, graph.Uniform, philox.Perturb, 0, other)))
}

// misnamed reads a key that nobody knows.
func misnamed(c *nn.Context, images, _ graph.ID) graph.ID {
	return noise(c, images, c.Input("kay", graph.KeyType))
}

// before is a step that adds to its weight a number that a stage has left: how often the
// stage has run, where it is its own, and otherwise changes the weight.
type before struct {
	toy.Config
	own   bool
	times int
}

func (m before) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	c := nn.NewContext(nn.Train, world)
	w, n := c.Weight("w", graph.D(), nn.Ones), c.Scratch("n", graph.D(), nil)
	images := c.Mean(c.Input(algo.InputImages, graph.T(graph.F32, batch, m.C, m.H, m.W)))
	if world > 1 {
		images = c.AllReduce(collective.Mean, "w", images)[0]
	}
	w = c.Add(c.Add(w, n), images)
	algo.WriteReport(c, []graph.ID{w, c.Input(algo.InputStop, graph.T(graph.F32))}, []graph.ID{n})
	c.Set("w", w)
	g, err := c.Commit()
	return g, c.Variables(), err
}

func (before) Report() []algo.Column { return algo.Columns([]string{"w", algo.ReportStop, "n"}, "w") }

func (before) Feeder(exec.Program) func(int64, int) { return func(int64, int) {} }

func (m before) Stages(int, int, int) ([]chain.Stage, error) {
	c := nn.NewContext(nn.Train, 1)
	if m.own {
		c.Set("n", c.Shift(c.Scratch("n", graph.D(), nil), 1))
	} else {
		c.Set("w", c.Shift(c.Weight("w", graph.D(), nn.Ones), 1))
	}
	g, err := c.Commit()
	return []chain.Stage{{Name: "count", Graph: g, Times: m.times}}, err
}

// Stages run as often as they say before each step.
func TestStagesRun(t *testing.T) {
	got, err := newRig(t.Context(), before{good(), true, 3}).train(newSets(1), 0, 2)
	if err != nil || got[0][2] != 3 || got[1][2] != 6 {
		t.Errorf("counted %v, %v", got, err)
	}
}

// writer changes the model when it is asked for codes.
type writer struct{ toy.Config }

func (m writer) Encode(n int) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	mean := c.Var("gauss.mean", graph.T(graph.F32, 6))
	c.Assign(mean, c.Shift(mean, 1))
	c.Output(algo.OutputCode, c.Zeros(graph.T(graph.F32, n, 6)))
	return c.Commit()
}

// mute gives no energies, but logits.
type mute struct{ toy.Config }

func (m mute) Energies(_ nn.Mode, n int) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	c.Output(algo.OutputLogit, c.Zeros(graph.T(graph.F32, n, 1)))
	return c.Commit()
}

// flat gives the latents of samples as samples.
type flat struct{ toy.Config }

func (m flat) Sample(mode nn.Mode, n int) (chain.Plan, error) {
	p, err := m.SampleGiven(n)
	p.Out = p.Vars[0].Name
	return p, err
}

// idle begins samples and draws none.
type idle struct{ toy.Config }

func (m idle) SampleGiven(n int) (chain.Plan, error) {
	p, err := m.Config.SampleGiven(n)
	p.Stages = nil
	return p, err
}

// shared is a config whose clone shares what is below.
type shared struct {
	toy.Config
	Below *toy.Config
}

func (c *shared) Clone() algo.Config { d := *c; return &d }

// deaf is a config with a setting that nobody keeps.
type deaf struct{ toy.Config }

func (c *deaf) Clone() algo.Config { d := *c; return &d }

func (c *deaf) Settings(s *setting.Set) {
	c.Config.Settings(s)
	lost := 3
	s.Int("lost", &lost, 1, 9, "nobody knows")
}

// unfitted is a config that takes no sizes from data.
type unfitted struct{ toy.Config }

func (c *unfitted) Clone() algo.Config { d := *c; return &d }

func (*unfitted) Fit(data.Schema) error { return nil }

// unrated has settings, and no learning rate among them.
type unrated struct{ toy.Config }

func (c *unrated) Settings(s *setting.Set) {
	s.Place(setting.Losses)
	s.Bool("toy-clean", &c.Clean, "report less")
}

func TestWrongModels(t *testing.T) {
	for name, tt := range map[string]struct {
		model algo.Model
		check func(rig) error
		want  string
	}{
		"a Feeder that fills nothing": {unfed{good()}, rig.inputs, "nobody fills all of the input toy.rate"},
		"an input that nobody knows":  {another{good(), misnamed}, rig.inputs, "nobody fills all of the input kay"},
		"draws of one name":           {another{good(), noisy}, rig.namesDraws, "draw{uniform purpose 10.0} of f32[8,1] have the same random words"},
		"a draw":                      {another{good(), noise}, rig.namesDraws, ""},
		"a clock":                     {clocked{another{good(), timed}, 1}, rig.inputs, ""},
		"a clock that stands":         {clocked{another{good(), timed}, 0}, rig.inputs, "its clock stands"},
		"a column too many":           {longer{good()}, rig.report, "want one output"},
		"no column for the stop":      {unstoppable{good()}, rig.report, "want stop among them"},
		"a stage":                     {before{good(), true, 2}, rig.chains, ""},
		"a stage that never runs":     {before{good(), true, 0}, rig.chains, "stage count: it is run 0 times"},
		"a stage that trains":         {before{good(), false, 1}, rig.chains, "it assigns w, which is no variable of the step of role scratch"},
		"a stop that arrives":         {good(), rig.stops, ""},
		"draws named by slot":         {another{good(), noise}, rig.ranksAgree, ""},
		"draws named by rank":         {another{good(), byRank}, rig.ranksAgree, "rank 0 of 2 is not one rank"},
		"noise as it is written":      {another{good(), noise}, rig.asWritten, ""},
		"draws by slot, bits":         {another{good(), noise}, rig.sameBits, ""},
		"draws by rank, bits":         {another{good(), byRank}, rig.sameBits, ""}, // the virtual ranks are the same on any number: only ranksAgree sees it
	} {
		expect(t, name, tt.check(newRig(t.Context(), tt.model)), tt.want)
	}
}

func TestWrongCapabilities(t *testing.T) {
	for name, tt := range map[string]struct {
		model      algo.Model
		capability string
		want       string
	}{
		"an encoder that trains": {writer{good()}, "codes", "assigns 1 variables"},
		"energies without one":   {mute{good()}, "energies", `has the outputs ["logit"]: want ["energy" "logit"]`},
		"latents as samples":     {flat{good()}, "samples", "want numbers of the shape [3 2 1 3]"},
		"samples":                {good(), "samples", ""},
		"samples never drawn":    {idle{good()}, "samples of given latents", "are alike"},
	} {
		r := newRig(t.Context(), tt.model)
		u, err := r.trained(newBackend(t))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, c := range capabilities(tt.model) {
			if c.name == tt.capability {
				found = true
				expect(t, name, u.use(c), tt.want)
			}
		}
		if !found {
			t.Errorf("%s: nobody checks %s", name, tt.capability)
		}
	}
}

func TestWrongConfigs(t *testing.T) {
	c := good()
	for name, tt := range map[string]struct {
		config algo.Config
		check  func(fitted) error
		want   string
	}{
		"a clone":                    {&c, shares, ""},
		"a clone that shares":        {&shared{good(), &toy.Config{}}, shares, "with its clone"},
		"sizes of its own":           {&unfitted{good()}, fitsOthers, "it is fitted to data of [1,1,2], and takes samples of [2,1,3]"},
		"sizes of the data":          {&c, fitsOthers, ""},
		"a learning rate":            {&c, hasRate, ""},
		"no learning rate":           {&unrated{good()}, hasRate, "no setting is called lr"},
		"a setting that goes astray": {&deaf{good()}, arrive, "--lost 4 changes nothing"},
	} {
		expect(t, name, tt.check(fitted{config: tt.config, Preset: algo.Preset{Config: tt.config}}), tt.want)
	}
	m := toy.Method()
	some := map[string]data.Schema{"toy-any": {C: 1, H: 1, W: 2}}
	expect(t, "the toy", names(m, some), "")
	m.Presets = append(m.Presets, algo.Preset{Name: "any", About: "x", Config: &c, Batch: 1, Steps: 1})
	expect(t, "a preset of no method", names(m, some), "any: want toy, or a kind of it")
}

// silent is a config with a setting that is kept and changes nothing.
type silent struct {
	toy.Config
	Kept int
}

func (c *silent) Clone() algo.Config { d := *c; return &d }

func (c *silent) Settings(s *setting.Set) {
	c.Config.Settings(s)
	s.Int("kept", &c.Kept, 0, 9, "is of no use")
}

// refusing is one that says so.
type refusing struct{ silent }

func (c *refusing) Clone() algo.Config { d := *c; return &d }

func (c *refusing) Settings(s *setting.Set) {
	c.silent.Settings(s)
	s.While(func() bool { return true }, "toys", "another method", "kept")
}

func TestSettingsWithoutEffect(t *testing.T) {
	c := good()
	for name, tt := range map[string]struct {
		config algo.Config
		want   string
	}{
		"settings with effects": {&c, ""},
		"a setting without":     {&silent{good(), 0}, "--kept 1: it is taken, and changes nothing"},
		"a setting refused":     {&refusing{silent{good(), 0}}, ""},
	} {
		expect(t, name, effective(toy.Method(), tt.config), tt.want)
	}
}

func expect(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want an error with %q", name, err, want)
	}
}
