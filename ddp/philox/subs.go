package philox

// Subs of the purposes that several packages draw for, by purpose. They name draws as
// purposes do: append only, never reuse. A training step's subs are the method's own, its
// places in the step; a run has one method.

// Subs of Sampling. Where nothing else is said, step is 0 and sample the sample.
const (
	SamplingLatents    uint16 = 0 // latents of samples that are drawn; step = transition
	SamplingUniform    uint16 = 1 // noise whose energy is compared with that of data
	SamplingSubset     uint16 = 2 // a kernel distance's subset; step = subset, sample = side
	SamplingPatches    uint16 = 3 // where a sliced distance's patches lie; step = level of the pyramid
	SamplingDirections uint16 = 4 // and what they are projected on; step = level, sample = direction
	SamplingSeed       uint16 = 5 // the seed of a batch of samples; sample = batch
	SamplingStarts     uint16 = 6 // the data at which chains begin that go back; one permutation
	SamplingGiven      uint16 = 7 // the training pictures whose latents samples are given

	SamplingNoise    uint16 = 16 // pictures of noise, known to be bad as those that follow
	SamplingPixels   uint16 = 17 // a picture's pixels, shuffled
	SamplingClass    uint16 = 18 // pictures of one class; one permutation
	SamplingRepeated uint16 = 19 // a few sentences, again and again; one permutation
	SamplingUnigram  uint16 = 20 // words that know nothing of each other
	SamplingWords    uint16 = 21 // a sentence's words, shuffled
)

// Subs of DataOrder. Where nothing else is said, step is the epoch.
const (
	DataOrderShards     uint16 = 0  // the shards, where blocks stay within theirs
	DataOrderBlocks     uint16 = 1  // the blocks of a shard; sample = shard
	DataOrderPool       uint16 = 2  // the samples of a pool of blocks; sample = pool
	DataOrderAll        uint16 = 3  // all blocks
	DataOrderImport     uint16 = 16 // pictures of a tree of files, once, without a seed; step is 0
	DataOrderTable      uint16 = 17 // which rows of a table are of which split, once, without a seed; sample and step are the row
	DataOrderClassifier uint16 = 0  // the pictures that an evaluation's classifier is trained on; step = pass
)

// Subs of Augment.
const (
	AugmentFlip           uint16 = 0 // step = epoch
	AugmentClassifierFlip uint16 = 0 // of an evaluation's classifier; step = training step
)
