// Package settings is what defines a run of training, and builds the algorithm
// that it names.
package settings

import (
	"encoding/json"
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/loop"
)

// Settings are everything that defines what a run computes, and nothing else:
// two runs with equal settings, on any number of ranks, train the same model.
// They are kept in config.json.
type Settings struct {
	Algo  string        `json:"algo"` // "bidvl"
	Net   string        `json:"net"`  // "conv32", the name of the algorithm's networks
	BiDVL *bidvl.Config `json:"bidvl,omitempty"`

	// DataDigest is what the split held. Where the data lay does not matter:
	// that is a flag of the run.
	DataDigest string `json:"data_digest"`
	Split      string `json:"split"`
	Flip       bool   `json:"flip"`

	// ShuffleMemory is the MiB that decide how many samples are mixed with each
	// other; 0 is loader's own choice.
	ShuffleMemory int `json:"shuffle_memory,omitempty"`

	Batch  int    `json:"batch"`            // over all ranks
	Shards int    `json:"shards,omitempty"` // virtual shards of the batch; 0 cuts it by ranks
	Seed   uint64 `json:"seed"`

	// Precision is that of training: "bf16", or "" for float32. Evaluation and
	// sampling are always float32.
	Precision string `json:"precision,omitempty"`

	// Data is where the data lay, in runs begun when that was a setting. It is
	// kept because their digest covers it, and means nothing else.
	Data string `json:"data,omitempty"`
}

// Judge is what evaluation asks of a model.
type Judge interface {
	// Judge builds, for batch images, their reconstructions and energies.
	Judge(mode nn.Mode, batch int) (*graph.Graph, error)
}

// Model is an algorithm with its networks, for training and for use.
type Model interface {
	loop.Algorithm
	Judge
}

// Algorithm is the algorithm that the settings name.
func (s Settings) Algorithm() (Model, error) {
	if s.Algo != "bidvl" || s.BiDVL == nil {
		return nil, fmt.Errorf("unknown --algo %q: this build has bidvl", s.Algo)
	}
	return *s.BiDVL, s.BiDVL.Validate()
}

// Parse reads the settings of a config.json.
func Parse(raw json.RawMessage) (Settings, error) {
	var s Settings
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("settings of the run: %w", err)
	}
	return s, nil
}
