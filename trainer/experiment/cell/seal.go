package cell

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// seal gives m its checksum.
func (m *Measured) seal() error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var asRead Measured // as which the sum is made when it is verified
	if err := json.Unmarshal(b, &asRead); err != nil {
		return err
	}
	m.Checksum, err = asRead.sum()
	return err
}

// sum is the SHA-256 of the JSON of m without a checksum.
func (m Measured) sum() (string, error) {
	m.Checksum = ""
	b, err := json.Marshal(m)
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:]), err
}

// verify takes the checksum of m, which was read, and reports numbers that are not those that
// were written: they would stand in a report like any others.
func (c Cell) verify(m *Measured) error {
	want := m.Checksum
	m.Checksum = ""
	if want == "" {
		return nil
	}
	got, err := m.sum()
	if err == nil && got != want {
		err = fmt.Errorf("its SHA-256 is %s, expected %s", got, want)
	}
	if err != nil {
		return &DamagedError{c.measuredFile(), measureAgain, err}
	}
	return nil
}
