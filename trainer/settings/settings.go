// Package settings is what defines a run of training: the method, its
// configuration, the data and the seed. The list of methods is in methods.go.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"

	"ebtrain/data"
	"ebtrain/trainer/algo"
)

// Settings are everything that defines what a run computes, and nothing else:
// two runs with equal settings, on any number of ranks, train the same model.
// They are kept in config.json.
type Settings struct {
	Algo  string          `json:"algo"`            // name of the method
	Net   string          `json:"net,omitempty"`   // --net, of methods that have a choice
	Model json.RawMessage `json:"model,omitempty"` // the method's configuration

	// DataDigest is what the split held. Where the data lay does not matter:
	// that is a flag of the run.
	DataDigest string `json:"data_digest"`
	Split      string `json:"split"`
	// Columns are, of data that are rows of a table, those of their values, whose digest
	// covers them: so samples can be given back as the table has them.
	Columns []data.Column `json:"columns,omitempty"`
	Flip    bool          `json:"flip"`

	// ShuffleMemory is the MiB that decide how many samples are mixed with each
	// other; 0 is loader's own choice.
	ShuffleMemory int `json:"shuffle_memory,omitempty"`

	Batch  int    `json:"batch"`            // over all ranks
	Shards int    `json:"shards,omitempty"` // virtual shards of the batch; 0 cuts it by ranks
	Seed   uint64 `json:"seed"`

	// Precision is that of training: "bf16", or "" for float32. Evaluation and
	// sampling are always float32.
	Precision string `json:"precision,omitempty"`

	// Average is the decay of the moving averages of weights; 0 keeps none.
	Average float64 `json:"average,omitempty"`

	// From names the weights that the run begins with, if they are another run's, as
	// ckpt.LearnedDigest does.
	From string `json:"from,omitempty"`
	// FromNetworks are the networks that begin with them, sorted; nil is all.
	FromNetworks []string `json:"from_networks,omitempty"`

	// BiDVL is Model, and Data is where the data lay, in runs begun when those
	// were their places. They are kept because the digest of such a run covers
	// them; Data means nothing else.
	BiDVL json.RawMessage `json:"bidvl,omitempty"`
	Data  string          `json:"data,omitempty"`
}

// Config is the method's configuration.
func (s Settings) Config() (algo.Config, error) {
	m, err := Method(s.Algo)
	if err != nil {
		return nil, err
	}
	raw := s.Model
	if raw == nil {
		raw = s.BiDVL
	}
	if raw == nil {
		return nil, errors.New("the run's settings hold no configuration of its method")
	}
	c, err := m.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("configuration of --algo %s: %w", s.Algo, err)
	}
	return c, nil
}

// SetConfig keeps a configuration of the method where the settings have it.
func (s *Settings) SetConfig(c algo.Config) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if s.BiDVL != nil {
		s.BiDVL = raw
		return nil
	}
	s.Model = raw
	return nil
}

// Build is the model that the settings define.
func (s Settings) Build() (algo.Model, error) {
	c, err := s.Config()
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c.Model(), nil
}

// Parse reads the settings of a config.json.
func Parse(raw json.RawMessage) (Settings, error) {
	var s Settings
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("settings of the run: %w", err)
	}
	return s, nil
}
