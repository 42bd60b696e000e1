package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
)

// configFormat is the version of config.json.
const configFormat = 1

// mostConfig is the most bytes of a config.json; most are of a vocabulary, some megabytes.
const mostConfig = 1 << 30

// Config is the content of config.json.
type Config struct {
	Format   int               `json:"format"`
	Program  string            `json:"program"`          // "train"
	Args     []string          `json:"args"`             // as typed
	Flags    map[string]string `json:"flags"`            // every flag with its value, also those not typed; of the last start
	Folder   string            `json:"folder,omitempty"` // from which relative paths in Flags are seen; "" of runs begun before it was kept
	Settings json.RawMessage   `json:"settings"`         // what defines the computation, canonical JSON
	Digest   string            `json:"digest"`           // of Settings
	World    int               `json:"world"`            // ranks
	Group    string            `json:"group,omitempty"`  // name of the job and epoch that began the run; "" without a launcher
	Started  time.Time         `json:"started"`
	Build    Build             `json:"build"`
	Resumed  []Resume          `json:"resumed,omitempty"`  // oldest first
	Saved    int64             `json:"saved,omitempty"`    // step of the checkpoint written last; 0 before the first
	Diverged string            `json:"diverged,omitempty"` // what the last start said if its numbers came apart; "" else
	Failed   string            `json:"failed,omitempty"`   // what the last start said if it failed before the run's first step; "" else
}

// Resume says when and how a run went on.
type Resume struct {
	Step   int64     `json:"step"`  // first step that ran again or newly
	World  int       `json:"world"` // ranks from then on
	Time   time.Time `json:"time"`
	Args   []string  `json:"args"`
	Commit string    `json:"commit"`
}

// LastStart is when the run began or, if that is later, went on.
func (c Config) LastStart() time.Time {
	if n := len(c.Resumed); n > 0 {
		return c.Resumed[n-1].Time
	}
	return c.Started
}

// Build says what a program was made of.
type Build struct {
	Go      string            `json:"go"`      // "go1.26.8"
	OS      string            `json:"os"`      // "linux/amd64"
	Commit  string            `json:"commit"`  // of the checkout, "+modified" if it was; empty if unknown
	Modules map[string]string `json:"modules"` // dependencies and their versions
}

// ThisBuild describes the running program.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return BuildOf(info)
}

// BuildOf describes a program, built by this Go for this system, of whose making
// info tells.
func BuildOf(info *debug.BuildInfo) Build {
	b := Build{Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, Modules: map[string]string{}}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified {
		b.Commit += "+modified"
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Modules[m.Path] = m.Version
	}
	return b
}

// ReadConfig reads the config.json of the run directory at path.
func ReadConfig(path string) (Config, error) {
	file := Layout(path).ConfigFile()
	b, err := atomicfile.Read(file, mostConfig)
	if odd, ok := errors.AsType[*atomicfile.OddError](err); ok {
		return Config{}, &DamagedError{file, errors.New("it " + odd.Is)}
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Config{}, notARun(path)
	}
	if err != nil {
		return Config{}, err
	}
	return ParseConfig(file, b)
}

// ParseConfig is ReadConfig of text, which is that of file.
func ParseConfig(file string, text []byte) (Config, error) {
	c, err := parseConfig(text)
	if errors.Is(err, errVersion) {
		return Config{}, fmt.Errorf("%s %w", file, err)
	}
	if err != nil {
		return Config{}, &DamagedError{file, err}
	}
	return c, nil
}

// DamagedError says that a config.json is not what was written.
type DamagedError struct {
	File    string
	Problem error
}

func (d *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %v: put back what it held, or begin a run in another folder", d.File, d.Problem)
}

func (d *DamagedError) Unwrap() error { return d.Problem }

// notARun says why there is no config.json in path.
func notARun(path string) error {
	switch st, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is not a run directory, the --out of a train run: it does not exist", path)
	case err != nil || !st.IsDir():
		return fmt.Errorf("%s is not a run directory, the --out of a train run: it, or what it lies in, is a file", path)
	}
	return fmt.Errorf("%s is not a run directory, the --out of a train run: it has no config.json", path)
}

// errVersion says that a config.json is whole and not of this version.
var errVersion = errors.New("was written by another version of this program")

func parseConfig(b []byte) (Config, error) {
	var c Config
	if err := unmarshal(b, &c); err != nil {
		return Config{}, err
	}
	if c.Format != configFormat {
		return Config{}, fmt.Errorf("%w: it has format %d, and this one reads %d: go on with the programs that wrote it", errVersion, c.Format, configFormat)
	}
	canonical, err := Canonical(c.Settings)
	if err != nil {
		return Config{}, err
	}
	if got := digestOf(canonical); got != c.Digest {
		return Config{}, fmt.Errorf("its settings have the digest %s, not the %s that is written beside them: they were changed by hand", data.Brief(got), data.Brief(c.Digest))
	}
	c.Settings = canonical
	return c, nil
}

// unmarshal reads JSON, and says in words of JSON what is wrong with it.
func unmarshal(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("no whole JSON at byte %d (%w)", s.Offset, err)
	}
	if u, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "what it holds"
		if u.Field != "" {
			what = u.Field
		}
		return fmt.Errorf("%s is of the wrong kind, a JSON %s, at byte %d", what, u.Value, u.Offset)
	}
	return err
}

// text is the bytes of config.json.
func (c Config) text() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(c)
	return b.Bytes(), err
}
