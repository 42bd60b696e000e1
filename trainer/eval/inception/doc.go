// Package inception is the network of published inception scores and Fréchet
// inception distances: Inception-v3 (Szegedy et al., 2016, arXiv:1512.00567) as it was
// exported on 2015-12-05, in the port to PyTorch that pytorch-fid uses. It differs
// from torchvision's Inception-v3 in its weights, in its 1008 classes, in average
// pools that do not count the padding, and in a largest value instead of an average in
// the pool of the last block.
//
// Pictures are (n, 3, H, W) in [−1, 1], enlarged or reduced to 299×299 as PyTorch's
// bilinear interpolation does, without a filter; features are the means of the 2,048
// last channels. The classes of an inception score are told without the last layer's
// bias, as by the program that made the published ones (Salimans et al., 2016).
//
// The weights are no part of this project, and nothing is downloaded: Load wants the
// one file whose digest it knows, and takes no other.
package inception

// The file of weights. Its name and digest are those of pytorch-fid's releases.
const (
	File   = "pt_inception-2015-12-05-6726825d.pth"
	Digest = "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2" // SHA-256
	Source = "https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/" + File
)

const (
	side     = 299 // of the pictures that the network sees
	channels = 3
	dim      = 2048 // features
	classes  = 1008
	epsilon  = 1e-3 // of the normalisations
)
