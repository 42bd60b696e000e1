package loop

import (
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
)

// Averages of weights are a file of their own in a checkpoint, in which they have the names
// of the weights: who reads weights, in any program, can read averages in their place.

// inFile is the name of a variable in its group's file.
func inFile(v nn.Variable) string {
	if v.Role == nn.Average {
		return nn.AveragedBy(v.Name)
	}
	return v.Name
}

// nameOf is the name of the variable that has a name in a group's file.
func nameOf(group, inFile string) string {
	if group == ckpt.Averages {
		return nn.AverageOf(inFile)
	}
	return inFile
}

// beginAverages sets averages to the weights, which are whole: what a checkpoint of no step
// holds.
func (t *Trainer) beginAverages() error {
	for _, v := range nn.Only(t.specs, nn.Average) {
		first, err := t.vars.Get(nn.AveragedBy(v.Name))
		if err != nil {
			return err
		}
		if err := t.setOwn(v.Name, first); err != nil {
			return err
		}
	}
	return nil
}
