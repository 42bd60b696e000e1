package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda"
)

// gpu is a GPU with its memory.
type gpu struct {
	*cuda.Backend
	notice string
}

// Notice says if the environment names GPUs that are not there: ranks that were to have one
// each share the others, or compute on fewer.
func (g gpu) Notice() string { return g.notice }

// Memory is the GPU's, which a rank has for itself unless others share the GPU; what
// they take is not free then, and the allocation says so.
func (g gpu) Memory() (Store, error) {
	bytes, of, err := g.Backend.Memory()
	return Store{Bytes: bytes, Of: of, Own: true}, err
}

var precisions = map[string]cuda.Precision{F32: cuda.F32, TF32: cuda.TF32, BF16: cuda.BF16}

var graphs = map[string]cuda.Graphs{"": cuda.GraphsAuto, Auto: cuda.GraphsAuto, On: cuda.GraphsOn, Off: cuda.GraphsOff}

// openGPU opens this rank's GPU; absent is why there is none here. Ranks take the GPUs
// that the process may use in turn, so they share them where there are fewer.
func openGPU(c Config) (b exec.Backend, absent, err error) {
	list, err := driver.Devices()
	for _, none := range []error{driver.ErrNoCgo, driver.ErrNoDriver, driver.ErrNoDevice, driver.ErrDriverTooOld} {
		if errors.Is(err, none) {
			return nil, err, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	g, err := cuda.New(cuda.Config{
		Ordinal: c.LocalRank % len(list), Precision: precisions[c.Precision], Graphs: graphs[c.Graph], Choices: c.Choices, Cache: choices(), Say: c.Say,
		Deterministic: c.Deterministic, Body: true, Smaller: c.Smaller,
	})
	if errors.Is(err, cuda.ErrNoBF16) {
		return nil, nil, fmt.Errorf("--precision bf16: %w: use --precision f32 or tf32", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w (--device cpu does without a GPU)", err)
	}
	return gpu{g, driver.NotVisible(len(list))}, nil, nil
}

// GPUs are the names of those that --device auto takes, one for each; none where it
// computes on the CPU.
func GPUs() []string {
	list, err := driver.Devices()
	if err != nil { // Open says why
		return nil
	}
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	return names
}

// short is why there is no GPU, in few words where that is no news.
func short(absent error) string {
	for _, none := range []error{driver.ErrNoCgo, driver.ErrNoDriver} {
		if errors.Is(absent, none) {
			return none.Error()
		}
	}
	return absent.Error()
}

// choices is the file that keeps, for all runs of this user, which of the libraries'
// kernels do what; "" where there is no place for it.
func choices() string {
	if folder := os.Getenv(driver.CacheVariable); folder != "" {
		return filepath.Join(folder, "choices.json")
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "" // all is timed again
	}
	return filepath.Join(folder, "ebtrain", "cuda-choices.json")
}
