package choose

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Compare is an error, the same on all ranks, where their GPUs or libraries differ, so that
// what rank 0 chooses may be none of another's. Ranks without libraries are alike whatever
// their GPUs: they have nothing to choose among. gather gives every rank what each passes.
func Compare(o Options, gather func([]byte) ([][]byte, error)) error {
	text, err := json.Marshal(machineOf(o))
	if err != nil {
		return err
	}
	texts, err := gather(text)
	if err != nil {
		return err
	}
	machines := make([]machine, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &machines[r]); err != nil {
			return fmt.Errorf("what rank %d computes with: %w", r, err)
		}
	}
	return judge(machines)
}

// judge says in which the first rank that differs from rank 0 does.
func judge(machines []machine) error {
	zero, bare := machines[0], true
	for _, m := range machines {
		bare = bare && m.Convolutions == "" && m.Products == ""
	}
	if bare {
		return nil
	}
	for r, m := range machines {
		var differ []string
		for _, of := range []struct{ what, zeros, theirs string }{
			{"GPU", zero.Device, m.Device}, {"cuDNN", zero.Convolutions, m.Convolutions}, {"cuBLASLt", zero.Products, m.Products},
		} {
			if of.zeros != of.theirs {
				differ = append(differ, fmt.Sprintf("rank 0 has %s and rank %d has %s", some(of.what, of.zeros), r, some(of.what, of.theirs)))
			}
		}
		if len(differ) > 0 {
			return fmt.Errorf("%s: install the same cuDNN and cuBLASLt on all hosts, and give all ranks GPUs of one model", strings.Join(differ, ", "))
		}
	}
	return nil
}

// some is what there is of a thing, for people.
func some(what, there string) string {
	if there == "" {
		return "no " + what
	}
	return there
}
