package ckpt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Format is the version of the format that is written and read.
const Format = 1

const stateFile = "state.json"

// State is where training stands. With the program's flags it determines what
// comes next: random numbers are functions of (seed, purpose, step, sample),
// so none of their state is kept.
type State struct {
	Step         int64           `json:"step"`          // steps done, which is the number of the next step
	Epoch        int64           `json:"epoch"`         // passes over the data completed, from 0
	Samples      int64           `json:"samples"`       // samples consumed by all ranks
	Seed         uint64          `json:"seed"`          // of all random numbers
	World        int             `json:"world"`         // ranks that wrote it; any number may go on
	ConfigDigest string          `json:"config_digest"` // of the settings that define the computation
	Loader       json.RawMessage `json:"loader"`        // the data loader's own state, nil if none
}

// entry is what state.json promises of a safetensors file.
type entry struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// manifest is the content of state.json.
type manifest struct {
	Format int `json:"format"`
	State
	Files    map[string]entry `json:"files"`
	Checksum string           `json:"checksum"` // SHA-256 of the manifest with an empty Checksum
}

func (s State) validate() error {
	switch {
	case s.Step < 0 || s.Epoch < 0 || s.Samples < 0:
		return fmt.Errorf("step %d, epoch %d, samples %d: none may be negative", s.Step, s.Epoch, s.Samples)
	case s.World < 1:
		return fmt.Errorf("world of %d ranks, expected at least 1", s.World)
	case s.Loader != nil && !json.Valid(s.Loader):
		return errors.New("the loader's state is not JSON")
	}
	return nil
}

// encode is the text of state.json; it sets m.Checksum.
func (m *manifest) encode() ([]byte, error) {
	sum, err := m.checksum()
	if err != nil {
		return nil, err
	}
	m.Checksum = sum
	return marshal(m, "  ")
}

// checksum is the SHA-256 of the compact JSON of m with an empty Checksum.
func (m manifest) checksum() (string, error) {
	m.Checksum = ""
	b, err := marshal(m, "")
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:]), nil
}

// marshal is JSON that keeps < > & as they are and ends with a newline. With
// no indent, raw messages are compacted.
func marshal(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}

// parseManifest reads and checks the text of state.json.
func parseManifest(b []byte) (*manifest, error) {
	var version struct{ Format *int }
	if err := json.Unmarshal(b, &version); err != nil { // also of what follows the object
		return nil, fmt.Errorf("not whole JSON: %w", err)
	}
	switch {
	case version.Format == nil:
		return nil, errors.New("no format")
	case *version.Format != Format:
		return nil, fmt.Errorf("%w: it has format %d, and this one reads %d: go on with the programs that wrote it", errVersion, *version.Format, Format)
	}
	var m manifest
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	sum, err := m.checksum()
	if err != nil {
		return nil, err
	}
	if sum != m.Checksum {
		return nil, fmt.Errorf("checksum is %q, the content has %s: it was changed", m.Checksum, sum)
	}
	for name, e := range m.Files {
		if groupOf(name) == "" || e.Bytes < 0 || len(e.SHA256) != 2*sha256.Size {
			return nil, fmt.Errorf("file %q: bad name, size or SHA-256", name)
		}
	}
	m.Loader, err = compact(m.Loader)
	return &m, errors.Join(err, m.validate())
}

// compact is raw without insignificant space; null and nothing are nil.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}
