package loop

import (
	"ebtrain/ddp/exec"
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

// showAverages has samples drawn from the averages, in the place of the weights that have one;
// gathered are those of which ranks have parts, and before the first step there may be none.
func (t *Trainer) showAverages(gathered map[string]*exec.Tensor) error {
	for _, v := range nn.Only(t.specs, nn.Weight, nn.Buffer) {
		value, err := t.shownValue(v, gathered)
		if err != nil {
			return err
		}
		if err := t.shown.Set(v.Name, value); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trainer) shownValue(v nn.Variable, gathered map[string]*exec.Tensor) (*exec.Tensor, error) {
	average := nn.AverageOf(v.Name)
	if value := gathered[average]; value != nil {
		return value, nil
	}
	if _, there := t.vars.Type(average); there && t.part(average) == nil {
		return t.vars.Get(average)
	}
	return t.vars.Get(v.Name)
}
