package choose

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
)

// choice is what was chosen for a problem.
type choice struct {
	By           string          `json:"by"`              // the library's name, "columns", "few" or "plain"
	Types        string          `json:"types"`           // in which it was asked
	Name         string          `json:"name"`            // for people
	Milliseconds float64         `json:"ms,omitempty"`    // what a run took; for people
	Saved        json.RawMessage `json:"saved,omitempty"` // for the library
}

// machine is what choices depend on besides the problem.
type machine struct {
	Device       string `json:"device"`
	Convolutions string `json:"convolutions"`
	Products     string `json:"products"`
}

func machineOf(o Options) machine {
	i := o.Device.Info()
	m := machine{Device: fmt.Sprintf("%s (compute capability %d.%d, %d multiprocessors)", i.Name, i.Major, i.Minor, i.SMs)}
	if o.Convolutions != nil {
		m.Convolutions = o.Convolutions.Name()
	}
	if o.Products != nil {
		m.Products = o.Products.Name()
	}
	return m
}

func (m machine) String() string {
	s := m.Device
	for _, l := range []string{m.Convolutions, m.Products} {
		if l != "" {
			s += " with " + l
		}
	}
	return s
}

// content is a file of choices.
type content struct {
	Version int               `json:"version"`
	Machine machine           `json:"machine"`
	Choices map[string]choice `json:"choices"` // by problem
}

// version of the file's format and of what names of problems mean.
const version = 1

// read returns the choices of a file that are of this machine. Others are none, which
// is said, if it matters: of a cache it does not.
func (c *Chooser) read(file string, matters bool) map[string]choice {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var f content
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err == nil && f.Version != version {
		err = fmt.Errorf("its format is %d, want %d", f.Version, version)
	}
	if err == nil && f.Machine != c.machine {
		if !matters {
			return nil
		}
		err = fmt.Errorf("it is of %v, and this is %v", f.Machine, c.machine)
	}
	if err != nil {
		c.o.Say(fmt.Sprintf("%s is not used and kernels are chosen anew, so numbers may differ in their last digits from those of an earlier run: %v", file, err))
		return nil
	}
	return f.Choices
}

// write keeps choices in a file, whole or not at all. A run goes on without, which is
// said.
func (c *Chooser) write(file string, choices map[string]choice, without string) {
	if file == "" {
		return
	}
	text, err := json.MarshalIndent(content{version, c.machine, choices}, "", "  ")
	if err == nil {
		err = replace(file, append(text, '\n'))
	}
	if err != nil {
		c.o.Say(fmt.Sprintf("%s: %v", without, err))
	}
}

// replace writes a file beside the old one and renames it. Who may read it is what the umask
// says, so it is not made by os.CreateTemp, whose files are their owner's alone.
func replace(file string, text []byte) error {
	t, err := os.OpenFile(fmt.Sprintf("%s.%d-%d", file, os.Getpid(), rand.Uint64()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = t.Write(text)
	err = cmp.Or(err, t.Sync(), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), file)
	}
	if err != nil {
		return cmp.Or(err, os.Remove(t.Name()))
	}
	return nil
}
