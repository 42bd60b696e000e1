package latent

// The published models [ALGORITHMS.md §2.2, §2.3]. What a GRBM has no use for has the value
// of the deep model for MNIST, so that every flag has a default.

// Checkerboard is the GRBM of the points on the checkerboard.
func Checkerboard() Net {
	return Net{Kind: GRBM, C: 1, H: 1, W: 2, Hidden: 4, Width: 64, Depth: 2, PosteriorWidth: 64}
}

// Frey is the GRBM of the Frey faces.
func Frey() Net {
	return Net{Kind: GRBM, C: 1, H: 28, W: 20, Hidden: 400, Width: 64, Depth: 2, PosteriorWidth: 64}
}

// MNIST is the deep model of MNIST padded to 32×32.
func MNIST() Net {
	return Net{Kind: EBLVM, C: 1, H: 32, W: 32, Hidden: 50, Width: 64, Depth: 2, PosteriorWidth: 64}
}

// Colour is the deep model of colour pictures of a size, CIFAR-10's or CelebA's; k is its depth.
func Colour(size, k int) Net {
	return Net{Kind: EBLVM, C: 3, H: size, W: size, Hidden: 50, Width: 128, Depth: k, PosteriorWidth: 64}
}
