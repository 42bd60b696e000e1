package catalogue

import "ebtrain/trainer/experiment/plan"

// checkerboardData are points, uniform on the two diagonal cells of the unit
// square; 60,000 to train on and 10,000 to test.
func checkerboardData() *plan.DataSet {
	return &plan.DataSet{Name: "checkerboard", Builtin: "checkerboard"}
}

func freyData() *plan.DataSet {
	return &plan.DataSet{
		Name: "frey", Make: []string{"frey"},
		Source: "the file frey_rawface.mat of https://cs.nyu.edu/~roweis/data.html",
	}
}

// mnistData has margins: the networks take 32×32.
func mnistData() *plan.DataSet {
	return &plan.DataSet{
		Name: "mnist32", Make: []string{"mnist", "--pad", "2"},
		Source: "the folder of MNIST's four .gz files, of http://yann.lecun.com/exdb/mnist/",
	}
}

// cifarData are the 50,000 and 10,000 pictures, from tars of JPEGs. The original
// ones, by mkshards cifar10, are given as --data.
func cifarData() *plan.DataSet {
	return &plan.DataSet{
		Name: "cifar10", Make: []string{"wds"},
		Source: "a folder with CIFAR-10 as WebDataset tars, whose names say train and test (or --data, of mkshards cifar10)",
	}
}

// svhnData and facesData are what is not CIFAR-10: house numbers and faces.
func svhnData() plan.DataSet {
	return plan.DataSet{Name: "svhn", Make: []string{"svhn"}, Source: "the cropped digits of http://ufldl.stanford.edu/housenumbers/"}
}

func facesData() plan.DataSet {
	return plan.DataSet{Name: "celeba", Make: []string{"celeba", "--crop", "140", "--size", "32"}, Source: "CelebA's aligned pictures and list_eval_partition.txt"}
}

// byValidation is how a model is chosen on the Frey faces [ALGORITHMS.md §2.2]: of
// ten checkpoints the one whose loss is least on the validation split.
func byValidation() *plan.Selection {
	return &plan.Selection{Measure: "loss", Of: 10, Evaluate: map[string]string{"split": "val"}}
}
