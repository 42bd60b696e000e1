package main

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/setting"
	"ebtrain/trainer/settings"
)

func model(t *testing.T, args string) *options {
	t.Helper()
	o, _, err := parse(nil, strings.Fields("--out a "+args), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// own is BiDVL's configuration.
func own(o *options) bidvl.Config { return *o.model.(*bidvl.Config) }

// A preset sets what flags do not; flags win wherever they stand.
func TestPresets(t *testing.T) {
	for _, p := range bidvl.Presets() {
		o := model(t, "--data x --preset "+p.Name)
		if !reflect.DeepEqual(own(o), p.Config) || o.settings.Batch != p.Batch || o.steps != p.Steps || o.settings.Net != p.Config.Net.Name() {
			t.Errorf("%s: got %+v, batch %d, %d steps", p.Name, o.model, o.settings.Batch, o.steps)
		}
	}
	o := model(t, "--data synth --lr 0.5 --batch 8 --preset bidvl-celeba128 --width 4 --steps 3 --latent-weight auto --beta2 0.8 --lower-steps 2")
	want := bidvl.CelebA128().Config
	want.Net.Width, want.LatentWeight, want.LowerSteps = 4, bidvl.DefaultLatentWeight, 2
	want.Lower.LR, want.Upper.Beta2, want.Lower.Beta2, want.Generator.Beta2 = 0.5, 0.8, 0.8, 0.8
	if !reflect.DeepEqual(own(o), want) || o.settings.Batch != 8 || o.steps != 3 {
		t.Errorf("got %+v, batch %d, %d steps; want %+v", o.model, o.settings.Batch, o.steps, want)
	}
}

// Pictures are mirrored where the preset's paper did so, unless a flag says no.
func TestFlipOfPresets(t *testing.T) {
	for args, want := range map[string]bool{
		"--preset bism-celeba64": true, "--preset vages-celeba64": true, "--preset bism-celeba64 --flip=false": false,
		"--preset bism-cifar10": false, "--preset vages-cifar10 --flip": true, "--preset bidvl-celeba64": false,
	} {
		if got := model(t, "--data x "+args).settings.Flip; got != want {
			t.Errorf("%s: flip %v, want %v", args, got, want)
		}
	}
}

// --net alone brings the settings that the paper uses with it; with --preset it
// changes the networks only.
func TestNets(t *testing.T) {
	for _, tt := range []struct {
		net  string
		want bidvl.Preset
	}{{"conv32", bidvl.CIFAR10()}, {"conv64", bidvl.CelebA64()}, {"resnet32", bidvl.CIFAR10ResNet()}, {"resnet128", bidvl.CelebA128()}} {
		o := model(t, "--net "+tt.net)
		if !reflect.DeepEqual(own(o), tt.want.Config) || o.settings.Batch != tt.want.Batch || o.steps != chosen.DefaultSteps {
			t.Errorf("%s: got %+v, batch %d, %d steps", tt.net, o.model, o.settings.Batch, o.steps)
		}
	}
	o := model(t, "--data x --preset bidvl-celeba64 --net conv32")
	want := bidvl.CelebA64().Config
	want.Net = bidvl.CIFAR10().Config.Net
	if !reflect.DeepEqual(own(o), want) {
		t.Errorf("got %+v, want %+v", o.model, want)
	}
}

// --net decides which other flags there are, wherever it stands: all settings of the networks
// that it chooses can be said, and --help shows what is used without them.
func TestSettingsOfNets(t *testing.T) {
	for _, m := range settings.Methods() {
		for _, net := range m.Nets {
			at, err := chosen.Names{Algo: m.Name, Net: net}.Begin()
			if err != nil {
				t.Fatal(err)
			}
			var own setting.Set
			at.Preset.Config.Clone().Settings(&own)
			for _, s := range own.All() {
				args := []string{"--out", "a", "--algo", m.Name, "--" + s.Name + "=" + s.String(), "--net", net}
				if o, _, err := parse(nil, args, io.Discard); err != nil || o.settings.Net != net || !reflect.DeepEqual(o.model, at.Preset.Config) {
					t.Errorf("%v: %v", args, err)
				}
			}
		}
	}
	for args, want := range map[string]string{
		"--net resnet32 --help":                        "(default hinge)",
		"--algo sngan --net resnet128 --help":          "(default constant)",
		"--algo lebm --net lstm --help":                "--embed int",
		"--help --net svhn --preset lebm-snli":         "--ngf int",
		"--preset lebm-svhn --data x --net svhn -help": "--ngf int",
	} {
		var out strings.Builder
		if _, _, err := parse(nil, strings.Fields(args), &out); !errors.Is(err, cliflag.ErrHelp) || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, and no %q in\n%s", args, err, want, out.String())
		}
	}
}

// The switches reach the model.
func TestSwitches(t *testing.T) {
	for _, tt := range []struct {
		args string
		set  func(c *bidvl.Config)
	}{
		{"--latent-term not-offset", func(c *bidvl.Config) { c.LatentTerm = bidvl.NotOffset }},
		{"--latent-term none --latent-weight 0", func(c *bidvl.Config) { c.LatentTerm, c.LatentWeight = bidvl.NoLatent, 0 }},
		{"--latent-weight 0.25", func(c *bidvl.Config) { c.LatentWeight = 0.25 }},
		{"--lower-level canonical", func(c *bidvl.Config) { c.LowerLevel = bidvl.Canonical }},
		{"--ratio sigmoid", func(c *bidvl.Config) { c.Ratio = bidvl.SigmoidRatio }},
		{"--ratio clamp", func(c *bidvl.Config) { c.Ratio = bidvl.ClampRatio }},
		{"--undecoupled", func(c *bidvl.Config) { c.Undecoupled = true }},
		{"--lower-steps 5 --fresh-latent --order lower-upper", func(c *bidvl.Config) { c.LowerSteps, c.FreshLatent, c.Order = 5, true, bidvl.LowerFirst }},
		{"--lr-generator 0.01 --weight-decay 0.5", func(c *bidvl.Config) {
			c.Lower.WeightDecay = 0.5
			g := c.Lower
			g.Name, g.LR = "generator", 0.01
			c.Generator = &g
		}},
		{"--net resnet32 --plain-shortcut --upper-loss difference --lr-generator 0", func(c *bidvl.Config) {
			*c = bidvl.CIFAR10ResNet().Config
			c.Net.PlainShortcut, c.UpperLoss, c.Generator = true, bidvl.Difference, nil
		}},
	} {
		want := bidvl.CIFAR10().Config
		tt.set(&want)
		if got := own(model(t, tt.args)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", tt.args, got, want)
		}
	}
}

func TestModelRefuses(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--preset bidvl-cifar10", "--preset bidvl-cifar10 needs --data: "},
		{"--preset fisher-200", "--preset fisher-200 needs --data: the directory that mkshards made, or built-in data: synth for pictures, checkerboard or gauss for points"},
		{"--data x --preset x", `unknown --preset "x": want one of bidvl-cifar10`},
		{"--data x --preset bidvl-cifar", `unknown --preset "bidvl-cifar": did you mean bidvl-cifar10?`},
		{"--data x --algo sngan --preset vae-cifar", `unknown --preset "vae-cifar": want one of sngan-cifar10, sngan-celeba64,`},
		{"--data x --preset vae-cifar10 --decoder-varience 3", "unknown flag --decoder-varience: did you mean --decoder-variance?"},
		{"--algo sm --unroll 3", "--unroll is a setting of --algo bism, and --algo sm has none of that name"},
		{"--data x --preset lebm-svhn --ngf 4 --net lstm", "--ngf is a setting of --preset lebm-svhn, lebm-cifar10, lebm-celeba64 or lebm-celeba32, and what is chosen here has none of that name"},
		{"--algo lebm --embed 4", "--embed is a setting of --preset lebm-snli, "},
		{"--algo cd --nothing 3", "unknown flag --nothing"},
		{"--algo=", `unknown --algo "": want one of bidvl, bism, `},
		{"--algo vea --preset help", `unknown --algo "vea": did you mean vae?`},
		{"--net=", `unknown --net "": want one of conv32`},
		{"--net", "--net needs a value: want text"},
		{"--algo lebm --net conv32", `unknown --net "conv32": want one of svhn`},
		{"--preset bism-frey --net conv32", "--net is a setting of --algo bidvl, lebm, vae or sngan, and --algo bism has none of that name"},
		{"--algo sm --preset bism-frey", "--preset: bism-frey is a preset of --algo bism, not of sm"},
		{"--latent-term x", `unknown --latent-term "x": want offset, not-offset or none`},
		{"--upper-loss x", `unknown --upper-loss "x"`},
		{"--lower-level x", `unknown --lower-level "x"`},
		{"--ratio x", `unknown --ratio "x"`},
		{"--lower-steps 0", "want --lower-steps of at least 1"},
		{"--lower-steps 101", "want --lower-steps of at most 100"},
		{"--lr-generator -1", "want --lr-generator of at least 0"},
		{"--latent-weight x", "want --latent-weight of at least 0"},
		{"--latent-weight nan", "want --latent-weight of at least 0"},
		{"--latent-weight 0", "a latent weight of 0 leaves the latent term out"},
		{"--net resnet32 --width 0", "want --width of at least 1"},
		{"--data x --preset bidvl-celeba128 --net conv64", "the hinge loss pushes energies"},
		{"--preset bism-board-dsm --objective mdsm --data checkerboard --batch 1", "want --batch of at least 2 for the losses of --algo bism as they are set, got 1"},
		{"--preset mdsm-mnist --data x --batch 1", "want --batch of at least 2 for the losses of --algo sm"},
		{"--preset vages-mnist --data x --batch 1", "want --batch of at least 2 for the losses of --algo vages"},
		{"--undecoupled --net resnet32", "the undecoupled model needs"},
		{"--plain-shortcut", "the conv32 networks have no shortcuts, so none can be plain: leave out --plain-shortcut"},
		{"--net resnet32 --bounded-variance", "the variance of the resnet32 networks' latents is bounded as it is: leave out --bounded-variance"},
	} {
		o, _, err := parse(nil, strings.Fields("--out a "+tt.args), io.Discard)
		if err == nil { // what only the whole model shows, fitted to its data
			in := o.model.Model().Takes().Shape
			err = o.fit(data.Schema{C: in.At(0), H: in.At(1), W: in.At(2)})
		}
		usage, ok := errors.AsType[*cliflag.UsageError](err)
		if !ok || !strings.HasPrefix(usage.Error(), tt.want) || strings.Contains(usage.Error(), "\n") {
			t.Errorf("%s: got %v, want a usage error that begins with %q", tt.args, err, tt.want)
		}
	}
}

func TestAlgoHelp(t *testing.T) {
	for _, args := range []string{"--algo help", "--out a --algo=help --preset help"} {
		var out strings.Builder
		_, _, err := parse(nil, strings.Fields(args), &out)
		if !errors.Is(err, cliflag.ErrHelp) {
			t.Errorf("%s: got %v, want help", args, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		for i, m := range settings.Methods() {
			if len(lines) != len(settings.Methods()) || !strings.HasPrefix(lines[i], m.Name+" ") || !strings.HasSuffix(lines[i], " "+m.About) {
				t.Fatalf("%s: want a line for each method, got\n%s", args, out.String())
			}
		}
	}
}

func TestPresetHelp(t *testing.T) {
	var out strings.Builder
	_, _, err := parse(nil, []string{"--algo", "bidvl", "--preset", "help"}, &out)
	if !errors.Is(err, cliflag.ErrHelp) {
		t.Errorf("got %v, want help", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(bidvl.Presets()) {
		t.Fatalf("%d lines, want one for each preset:\n%s", len(lines), out.String())
	}
	for i, p := range bidvl.Presets() {
		if !strings.HasPrefix(lines[i], p.Name+" ") {
			t.Errorf("line %d is %q, want it to describe %s", i, lines[i], p.Name)
		}
	}
}
