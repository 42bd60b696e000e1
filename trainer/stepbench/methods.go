package main

import (
	"fmt"
	"strings"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/lebm"
	"ebtrain/trainer/method/vages"
)

// trained is the model of a method, as train builds it of a config.
type trained struct {
	algo.Model
	config algo.Config
}

// Validate says what is wrong with the config.
func (t trained) Validate() error { return t.config.Validate() }

// presetOf is the config of a preset, to be changed.
func presetOf[C algo.Config](m algo.Method, name string) (c C, err error) {
	p, err := m.Preset(name)
	if err != nil {
		return c, err
	}
	return p.Config.Clone().(C), nil
}

// lebmPictures is the latent-space prior on CIFAR-10, with as many steps of the
// posterior as on other pictures.
func lebmPictures(o *options) (model, error) {
	c, err := presetOf[*lebm.Config](lebm.Method(), "lebm-cifar10")
	if err != nil {
		return nil, err
	}
	c.Net.NGF, c.Net.Latent, c.PosteriorChain.Steps = o.width, o.latent, 20
	return trained{c.Model(), c}, onlyBidvl(o)
}

// vagesMNIST is VaGES of the deep model on MNIST.
func vagesMNIST(o *options) (model, error) {
	c, err := presetOf[*vages.Config](vages.Method(), "vages-mnist")
	if err != nil {
		return nil, err
	}
	c.Net.Width, c.Net.PosteriorWidth, c.Net.Hidden = o.width, o.width, o.latent
	return trained{c.Model(), c}, onlyBidvl(o)
}

// Sentences of stepbench: so many tokens each, begin and end included, of a vocabulary
// as small as that of 4,000 sentences of SNLI.
const (
	sentenceTokens = 20
	vocabulary     = 1789
)

// lebmText is the latent-space prior on sentences. --width is of embeddings and units.
func lebmText(o *options) (model, error) {
	c, err := presetOf[*lebm.Config](lebm.Method(), "lebm-snli")
	if err != nil {
		return nil, err
	}
	c.Net.Latent, c.Text.Embed, c.Text.Hidden = o.latent, o.width, o.width
	c.Text.Words, c.Text.Lengths = words(vocabulary), []int{sentenceTokens}
	return trained{c.Model(), c}, onlyBidvl(o)
}

// words is a vocabulary of n words.
func words(n int) string {
	all := data.ReservedWords()
	for i := len(all); i < n; i++ {
		all = append(all, fmt.Sprintf("w%d", i))
	}
	return strings.Join(all, " ")
}
