// Package sngan is the spectrally normalised GAN [Miyato et al. 2018] with residual
// networks and the hinge loss, a baseline of BiDVL [ALGORITHMS.md §1.2 (iii), §7.6],
// as the PyTorch library Mimicry trains it.
//
// A generator G makes pictures of latents h ~ N(0, I), and a discriminator D, every
// layer of which is divided by its spectral norm, tells them from data. A training
// step is one update of G and then n of D, in this order, on a batch of n parts:
//
//	G:  −⟨D(G(h))⟩
//	D:  ⟨relu(1 − D(v))⟩ + ⟨relu(1 + D(G(h)))⟩   with part 1, 2 … n of the batch
//
// Every update of D sees pictures of its own and latents of its own, and G by the
// batch's statistics; every pass of D makes a power iteration first.
//
// The batch is that of a step: n·B pictures for updates of B. The parts are
// interleaved, so that they are the same pictures on any number of ranks: slot s of
// the global batch belongs to part s mod n, and n slots in a row are a Group.
// Latents are named by the slot that they stand for.
//
// Configs are plain values; a graph under construction belongs to one goroutine.
package sngan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// maxUpdates bounds n: every update is in the graph of a step.
const maxUpdates = 100

// Config is everything that defines the computation of a step.
type Config struct {
	Net nets.ResNet
	// Updates is n, those of the discriminator in a step.
	Updates int
	// Adam steps each network, in optimisers of their own.
	Adam optim.Adam
	// Schedule of the learning rate, over ScheduleSteps steps if it is linear.
	Schedule      optim.Kind
	ScheduleSteps int
}

// Group is n: a rank's share of the batch has whole groups of one slot for each
// part.
func (c Config) Group() int { return max(1, c.Updates) }

// Clone is a copy that shares nothing with c.
func (c *Config) Clone() algo.Config { d := *c; return &d }

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model { return *c }

// Fit takes the number of channels from the data.
func (c *Config) Fit(s data.Schema) error { return c.Net.Fit(s) }

// Takes says which pictures the networks take.
func (c Config) Takes() algo.Inputs { return c.Net.Takes() }

// netNames are the values of --net, and sizes what they stand for.
func netNames() []string {
	var names []string
	for _, size := range sizes() {
		names = append(names, nets.ResNet{Size: size}.Name())
	}
	return names
}

func sizes() []int { return []int{32, 64, 128} }

// SetNet takes the networks of that name at the published sizes.
func (c *Config) SetNet(name string) error {
	i := slices.Index(netNames(), name)
	if i < 0 {
		return fmt.Errorf("unknown networks %q: want one of %s", name, strings.Join(netNames(), ", "))
	}
	c.Net = published(sizes()[i])
	return nil
}

func published(size int) nets.ResNet {
	return nets.ResNet{Size: size, Channels: 3, Width: 64, Latent: 128}
}

func schedules() []optim.Kind { return []optim.Kind{optim.Constant, optim.Linear} }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	c.Net.Settings(s)
	s.Place(setting.Losses)
	s.Int("n-dis", &c.Updates, 1, maxUpdates, "n, updates of the discriminator in a step; each has its own part of --batch, which is the pictures of all n")
	s.Place(setting.Optimisers)
	c.Adam.Settings(s)
	setting.Word(s, "schedule", &c.Schedule, schedules(), "of the learning rate: constant, or linear, which ends at 0")
	s.Int("schedule-steps", &c.ScheduleSteps, 1, 1<<30, "steps of a linear schedule, whatever --steps says: a shorter run ends before its end, a longer one stands still after it")
	setting.For(s, "schedule", &c.Schedule, optim.Linear, "schedule-steps")
}

// rate is the schedule of the learning rate.
func (c Config) rate() optim.Schedule {
	return optim.Schedule{Kind: c.Schedule, Base: c.Adam.LR, Steps: int64(c.ScheduleSteps)}
}

// discriminator and generator are the optimisers.
func (c Config) discriminator() optim.Adam { return c.named("discriminator") }
func (c Config) generator() optim.Adam     { return c.named("generator") }

func (c Config) named(name string) optim.Adam {
	a := c.Adam
	a.Name = name
	return a
}

// Validate says everything that is wrong with the settings.
func (c Config) Validate() error {
	var updates error
	if c.Updates < 1 || c.Updates > maxUpdates {
		updates = fmt.Errorf("want from 1 to %d updates of the discriminator in a step (--n-dis), got %d", maxUpdates, c.Updates)
	}
	return errors.Join(updates, setting.OneOf("schedule", c.Schedule, schedules()), c.rate().Validate(), c.Adam.Validate(), c.Net.Validate())
}
