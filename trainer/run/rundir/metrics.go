package rundir

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"ebtrain/data/atomicfile"
)

// Record is one line of metrics.jsonl. Numbers are written in the shortest
// form that reads back to the same bits; NaN and the infinities, which JSON
// does not have, are the strings "NaN", "Inf" and "-Inf".
type Record struct {
	Step        int64              // number of the step, from 0
	Epoch       int64              // from 0
	Samples     int64              // consumed by all ranks, this step included
	Losses      map[string]float64 // by name; written sorted
	SamplesPerS float64            // all ranks together
	StepMS      float64            // wall time of the step
	DataMS      float64            // of which waiting for data
	CommMS      float64            // of which waiting for collectives
	MemBytes    int64              // memory of rank 0's process
	Time        float64            // seconds since 1970 at its end; 0 in lines of older programs
}

// line is a Record as it is written.
type line struct {
	Step        *int64            `json:"step"`
	Epoch       int64             `json:"epoch"`
	Samples     int64             `json:"samples"`
	Losses      map[string]Number `json:"losses"`
	SamplesPerS Number            `json:"samples_per_s"`
	StepMS      Number            `json:"step_ms"`
	DataMS      Number            `json:"data_ms"`
	CommMS      Number            `json:"comm_ms"`
	MemBytes    int64             `json:"mem_bytes"`
	Time        Number            `json:"time"`
}

// Number is a float64 whose JSON can say NaN and the infinities.
type Number float64

func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	switch {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Inf"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Inf"`), nil
	}
	return json.Marshal(f)
}

func (n *Number) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case `"NaN"`, `"Inf"`, `"-Inf"`:
		f, err := strconv.ParseFloat(s[1:len(s)-1], 64)
		*n = Number(f)
		return err
	case "null":
		return errors.New("null is not a number")
	}
	return json.Unmarshal(b, (*float64)(n))
}

// MarshalJSON writes the record as one line of metrics.jsonl.
func (r Record) MarshalJSON() ([]byte, error) {
	b, _ := appendRecord(nil, r, nil)
	return b, nil
}

// UnmarshalJSON reads a line of metrics.jsonl.
func (r *Record) UnmarshalJSON(b []byte) error {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	if l.Step == nil || *l.Step < 0 {
		return errors.New(`"step" is missing or negative`)
	}
	losses := make(map[string]float64, len(l.Losses))
	for name, v := range l.Losses {
		losses[name] = float64(v)
	}
	*r = Record{*l.Step, l.Epoch, l.Samples, losses,
		float64(l.SamplesPerS), float64(l.StepMS), float64(l.DataMS), float64(l.CommMS), l.MemBytes, float64(l.Time)}
	return nil
}

// Metrics appends to metrics.jsonl.
type Metrics struct {
	f    *os.File
	last int64   // step of the last line, -1 if there is none
	kept []int64 // steps of the lines that were there, until Missing is asked
	err  error   // of the first write that went wrong; what follows would be glued to half a line

	text  []byte // of a line, for reuse
	names []string
}

// OpenMetrics opens the file at path, made if needed, to append the lines of
// step and later ones. Lines of step and later are cut off, and so is a last
// line torn by a kill: the run is about to make them again. So is a hole, behind which no
// line stays: where a machine loses power that has not written all of a file, what was
// written last may be there, and zeros before it. Any other line
// that cannot be read is an error that names it, and nothing is cut. The lines that
// stay are shown to kept, in order; it may be nil.
//
// Cutting keeps a prefix of the file, in one call of the kernel: a kill leaves
// the file as before or as after.
func OpenMetrics(path string, step int64, kept func(Record)) (*Metrics, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%s is a folder, where a run has a file: move it away", path)
	}
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && !st.Mode().IsRegular() { // a pipe, of which a read may never end
		return nil, errors.Join(fmt.Errorf("%s is no file, where a run has one: move it away", path), f.Close())
	}
	m := &Metrics{f: f, last: -1}
	if err := errors.Join(atomicfile.SyncDir(filepath.Dir(path)), m.cut(step, kept)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return m, nil
}

// cut keeps the lines before step, and shows them to kept.
func (m *Metrics) cut(step int64, kept func(Record)) error {
	var keep int64
	open := false  // the last line kept has no newline
	var hole error // of the first hole
	err := scan(m.f, func(r Record, size int64, whole bool) error {
		if r.Step < step {
			keep, m.last, open = keep+size, r.Step, !whole
			m.kept = append(m.kept, r.Step)
			if kept != nil {
				kept(r)
			}
			return hole
		}
		return nil
	}, func(err error) error {
		hole = cmp.Or(hole, err)
		return nil
	})
	if err != nil {
		return err
	}
	st, err := m.f.Stat()
	if err != nil {
		return err
	}
	if keep < st.Size() {
		if err := m.f.Truncate(keep); err != nil {
			return err
		}
	}
	if open {
		if _, err := m.f.WriteString("\n"); err != nil {
			return err
		}
	}
	return m.f.Sync()
}

// Gap is what is missing of metrics.jsonl.
type Gap struct {
	Lines, Due int64 // that are there of those that are due, and these
	First      int64 // step of the first that is missing
}

// Missing says which lines are missing of those that are due before step, to be asked
// once, before Append; false means none.
func (m *Metrics) Missing(step int64, due func(step int64) bool) (Gap, bool) {
	g := Gap{First: -1}
	kept := m.kept
	m.kept = nil
	for s := range step {
		there := len(kept) > 0 && kept[0] == s
		if there {
			kept = kept[1:]
		}
		switch {
		case !due(s):
			continue
		case there:
			g.Lines++
		case g.First < 0:
			g.First = s
		}
		g.Due++
	}
	return g, g.First >= 0
}

// Append writes one line with one write. Steps must rise.
func (m *Metrics) Append(r Record) error {
	if m.err != nil {
		return m.err
	}
	if r.Step <= m.last {
		return fmt.Errorf("%s: step %d after step %d: steps must rise", m.f.Name(), r.Step, m.last)
	}
	m.text, m.names = appendRecord(m.text[:0], r, m.names)
	m.text = append(m.text, '\n')
	if _, err := m.f.Write(m.text); err != nil {
		m.err = err
		return err
	}
	m.last = r.Step
	return nil
}

// Sync makes the lines so far survive a power cut. Call it before a checkpoint
// is written: a checkpoint of step n promises the lines before n.
func (m *Metrics) Sync() error { return m.f.Sync() }

// Close syncs and closes the file.
func (m *Metrics) Close() error { return errors.Join(m.f.Sync(), m.f.Close()) }

// ReadMetrics reads all lines of the file at path. A last line that is still
// being written is left out.
func ReadMetrics(path string) ([]Record, error) {
	f, err := atomicfile.Open(path)
	if err != nil {
		return nil, err
	}
	var records []Record
	err = scan(f, func(r Record, _ int64, _ bool) error {
		records = append(records, r)
		return nil
	}, func(err error) error { return err })
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return records, nil
}

// scan gives each line to f with its size in bytes and whether a newline ends
// it, and what is wrong with one that has zeros in it to hole. A last line without newline
// that cannot be read is left out.
func scan(r io.Reader, f func(r Record, size int64, whole bool) error, hole func(error) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	last := int64(-1)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		whole := err == nil
		if !whole && len(text) == 0 {
			return nil
		}
		var rec Record
		if err := unmarshal(bytes.TrimSuffix(text, []byte("\n")), &rec); err != nil {
			if !whole {
				return nil
			}
			err = fmt.Errorf("line %d: %w: mend the line or delete it", n, err)
			if bytes.IndexByte(text, 0) < 0 {
				return err
			}
			if err := hole(err); err != nil {
				return err
			}
			continue
		}
		if rec.Step <= last {
			return fmt.Errorf("line %d: step %d after step %d: steps must rise", n, rec.Step, last)
		}
		last = rec.Step
		if err := f(rec, int64(len(text)), whole); err != nil {
			return err
		}
	}
}
