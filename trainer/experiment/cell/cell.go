package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ebtrain/data/atomicfile"
	"ebtrain/trainer/experiment/measure"
)

// format is the version of both files.
const format = 1

// most is the most bytes of one; they have some thousands.
const most = 1 << 26

// Cell names a cell.
type Cell struct {
	Root            string // the folder of all experiments
	Experiment, Row string
	Seed            uint64
}

func (c Cell) String() string { return fmt.Sprintf("%s %s seed %d", c.Experiment, c.Row, c.Seed) }

// Dir is its folder.
func (c Cell) Dir() string {
	return filepath.Join(c.Root, c.Experiment, c.Row, fmt.Sprintf("seed-%d", c.Seed))
}

// Console is the file of what the programs printed.
func (c Cell) Console() string { return filepath.Join(c.Dir(), "console.log") }

// Files are what a report knows of a cell.
func (c Cell) Files() []string { return []string{c.begunFile(), c.measuredFile()} }

func (c Cell) begunFile() string    { return filepath.Join(c.Dir(), "cell.json") }
func (c Cell) measuredFile() string { return filepath.Join(c.Dir(), "measured.json") }

// Begun is the content of cell.json.
type Begun struct {
	Format   int      `json:"format"`
	Commit   string   `json:"commit"`   // of the programs
	Settings []string `json:"settings"` // what defines the computation: flags of train
	Data     Data     `json:"data,omitempty"`
	// Questions are what is asked of it once it is trained; none are known of cells from
	// before they were kept.
	Questions []string  `json:"questions,omitempty"`
	Steps     int64     `json:"steps"` // to be done
	TriedOut  bool      `json:"tried_out,omitempty"`
	Started   time.Time `json:"started"`
	Pieces    []Piece   `json:"pieces"`

	// Checksum is that of all else, in the file alone; cells from before it was kept have none.
	Checksum string `json:"checksum,omitempty"`
}

// Piece is one process that worked on a cell.
type Piece struct {
	Program string    `json:"program"` // "train"
	Started time.Time `json:"started"`
	CPU     float64   `json:"cpu_s"` // seconds of processor time
	Wall    float64   `json:"wall_s"`
	Threads int       `json:"threads"`
	Ranks   int       `json:"ranks,omitempty"` // of the launcher that was started; 0: the program alone
	Ended   string    `json:"ended"`           // "exit 0"; "" while it runs, and ever after if nobody saw its end
}

// CPU is the seconds of processor time of all pieces of a program, or of all
// programs if it is empty.
func (b Begun) CPU(program string) float64 {
	var sum float64
	for _, p := range b.Pieces {
		if program == "" || p.Program == program {
			sum += p.CPU
		}
	}
	return sum
}

// Lost are the programs of which some process has no known end, and so no known cost,
// each once.
func (b Begun) Lost() (programs []string) {
	for _, p := range b.Pieces {
		if p.Ended == "" && !slices.Contains(programs, p.Program) {
			programs = append(programs, p.Program)
		}
	}
	return programs
}

// Measured is the content of measured.json.
type Measured struct {
	Format   int      `json:"format"`
	Commit   string   `json:"commit"`
	Settings []string `json:"settings"`
	Data     Data     `json:"data,omitempty"`
	Steps    int64    `json:"steps"`
	TriedOut bool     `json:"tried_out,omitempty"` // with fewer steps than the experiment has

	Machine string     `json:"machine"`
	Command [][]string `json:"command"` // of each program, as it was first started
	Ended   time.Time  `json:"ended"`
	CPU     float64    `json:"cpu_s"` // of all programs
	Train   float64    `json:"train_cpu_s"`

	Broken *Broken                    `json:"broken,omitempty"` // then nothing was measured
	Values map[string]float64         `json:"values,omitempty"`
	Curves map[string][]measure.Point `json:"curves,omitempty"`
	Notes  []string                   `json:"notes,omitempty"`
	// Quality is what evaluate says of samples beside data, with floor and controls.
	Quality any `json:"quality,omitempty"`

	// Checksum is that of all else, in the file alone; cells from before it was kept have none.
	Checksum string `json:"checksum,omitempty"`
}

// Broken says why a cell came to nothing.
type Broken struct {
	Program  string `json:"program"`
	Ended    string `json:"ended"` // "exit 1"
	Line     string `json:"line"`  // the last that it printed
	Diverged bool   `json:"diverged,omitempty"`
}

func (b Broken) String() string { return fmt.Sprintf("%s: %s: %s", b.Program, b.Ended, b.Line) }

// Status is what is on the disk.
type Status struct {
	Begun    *Begun    // nil: nothing was begun
	Measured *Measured // nil: not finished
}

// Finished says that the cell was measured, or that its training diverged, which
// it would do again.
func (s Status) Finished() bool {
	return s.Measured != nil && (s.Measured.Broken == nil || s.Measured.Broken.Diverged)
}

// Load reads what there is. A damaged file is a DamagedError.
func (c Cell) Load() (Status, error) {
	var s Status
	var begun Begun
	ok, err := read(c.begunFile(), "remove its folder to do the cell anew, or give run --again", &begun, &begun.Format, &begun.Checksum)
	if err != nil || !ok {
		return s, err
	}
	s.Begun = &begun
	var measured Measured
	ok, err = read(c.measuredFile(), "remove this one file, and experiment run measures the cell again", &measured, &measured.Format, &measured.Checksum)
	if ok && err == nil {
		s.Measured = &measured
	}
	return s, err
}

// DamagedError is a file of a cell that is not what was written.
type DamagedError struct {
	file, advice string
	err          error
}

func (d *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %v: %s", d.file, d.err, d.advice)
}

func (d *DamagedError) Unwrap() error { return d.err }

// read reads a file of JSON; false if there is none. advice is for a damaged one.
func read[T content](file, advice string, into *T, version *int, checksum *string) (bool, error) {
	b, err := atomicfile.Read(file, most)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if odd, ok := errors.AsType[*atomicfile.OddError](err); ok {
		return false, &DamagedError{file, advice, errors.New("it " + odd.Is)}
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, &DamagedError{file, advice, err}
	}
	switch *version {
	case format:
		if err := verify(into, checksum); err != nil {
			return false, &DamagedError{file, advice, err}
		}
		return true, nil
	case 0:
		return false, &DamagedError{file, advice, errors.New("it does not say its format")}
	}
	return false, fmt.Errorf("%s has format %d, this program reads %d: give another --out", file, *version, format)
}

// Begin writes cell.json, new or changed.
func (c Cell) Begin(b Begun) error {
	b.Format, b.Checksum = format, ""
	var err error
	if b.Checksum, err = seal(b); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir(), 0o777); err != nil {
		return err
	}
	return write(c.begunFile(), b)
}

// Finish writes measured.json.
func (c Cell) Finish(m Measured) error {
	m.Format, m.Checksum = format, ""
	var err error
	if m.Checksum, err = seal(m); err != nil {
		return err
	}
	return write(c.measuredFile(), m)
}

// Reopen takes a result that is to be made again out of the way.
func (c Cell) Reopen() error {
	if err := os.Remove(c.measuredFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Remove removes a cell that was begun; a folder that is none stays.
func (c Cell) Remove() error {
	if _, err := os.Stat(c.begunFile()); err != nil {
		return err
	}
	return os.RemoveAll(c.Dir())
}

func write(file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(file, append(b, '\n'))
}
