package bidvl

import (
	"fmt"

	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/optim"
)

// Preset are the settings of one experiment of the paper [ALGORITHMS.md §1.4].
type Preset struct {
	Name, About string
	Config      Config
	Batch       int   // over all ranks
	Steps       int64 // of the paper's run
}

// Presets are all presets.
func Presets() []Preset {
	return []Preset{CIFAR10(), SVHN(), CelebA32(), CelebA64(), CIFAR10ResNet(), CelebA128()}
}

// PresetFor is the preset whose settings the paper uses with networks of that
// name: the first one that has them.
func PresetFor(net string) (Preset, error) {
	for _, p := range Presets() {
		if p.Config.Net.Name() == net {
			return p, nil
		}
	}
	if _, err := nets.Named(net); err != nil {
		return Preset{}, err
	}
	return Preset{}, fmt.Errorf("no preset of bidvl has the networks %s", net)
}

// CIFAR10 is CIFAR-10 with the convolutional networks.
func CIFAR10() Preset {
	return Preset{"bidvl-cifar10", "CIFAR-10, 32x32, convolutional networks", conv(32, 0.05), 100, 300_000}
}

// SVHN is SVHN, as CIFAR-10.
func SVHN() Preset {
	return Preset{"bidvl-svhn", "SVHN, 32x32, convolutional networks", conv(32, 0.05), 100, 300_000}
}

// CelebA32 is CelebA at 32×32, as CIFAR-10.
func CelebA32() Preset {
	return Preset{"bidvl-celeba32", "CelebA, crop 160, 32x32, convolutional networks", conv(32, 0.05), 100, 300_000}
}

// CelebA64 is CelebA at 64×64. r′ is the paper's; the released script has 1.0.
func CelebA64() Preset {
	return Preset{"bidvl-celeba64", "CelebA, crop 160, 64x64, convolutional networks", conv(64, 0.1), 50, 600_000}
}

// CIFAR10ResNet is CIFAR-10 with the residual networks.
func CIFAR10ResNet() Preset {
	return Preset{"bidvl-cifar10-resnet", "CIFAR-10, 32x32, residual networks, hinge loss", resnet(32, 0.999), 100, 200_000}
}

// CelebA128 is CelebA at 128×128 with the residual networks.
func CelebA128() Preset {
	return Preset{"bidvl-celeba128", "CelebA, crop 160, 128x128, residual networks, hinge loss", resnet(128, 0.998), 36, 300_000}
}

// formal is the formal version, in the order of the released code.
func formal(family nets.Family, size, latent int, vaeWeight, decay float64) Config {
	adam := func(name string) optim.Adam { return optim.Adam{Name: name, Beta2: 0.9, Eps: 1e-8, Decay: decay} }
	return Config{
		Net:          nets.Spec{Family: family, Size: size, Channels: 3, Width: 64, Latent: latent},
		Order:        UpperFirst,
		LowerSteps:   1,
		LatentTerm:   Offset,
		UpperLoss:    Difference,
		LowerLevel:   Symmetric,
		Ratio:        ConstantRatio,
		VAEWeight:    vaeWeight,
		LatentWeight: DefaultLatentWeight,
		Upper:        adam("upper"),
		Lower:        adam("lower"),
	}
}

// conv are the settings for the convolutional networks: two optimisers, and
// weight decay on Q and G.
func conv(size int, vaeWeight float64) Config {
	c := formal(nets.ConvFamily, size, 100, vaeWeight, 0.998)
	c.Upper.LR = 1e-4
	c.Lower.LR, c.Lower.WeightDecay = 3e-4, 1e-4
	return c
}

// resnet are the settings for the residual networks: three optimisers, hinge
// loss, fresh latents in the lower level and a small λ_h.
func resnet(size int, decay float64) Config {
	c := formal(nets.ResNetFamily, size, 128, 0.05, decay)
	c.UpperLoss, c.FreshLatent, c.LatentWeight = Hinge, true, 1e-4
	c.Upper.LR, c.Lower.LR = 2e-4, 2e-4
	g := c.Lower
	g.Name = "generator"
	c.Generator = &g
	return c
}
