package ckpt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"ebtrain/data/atomicfile"
)

// Read reads the checkpoint at path, the folder itself, and checks all of it.
// Tensors of a group are sorted by name. The error is a *DamagedError if the
// content is wrong, and another if the disk or the permissions are.
func Read(path string) (State, map[string][]Named, error) {
	m, err := readManifest(path)
	if err != nil {
		return State{}, nil, err
	}
	groups := make(map[string][]Named, len(m.Files))
	for name, e := range m.Files {
		file := filepath.Join(path, name)
		if err := checkSize(file, e); err != nil {
			return State{}, nil, err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return State{}, nil, err
		}
		sum := sha256.Sum256(content)
		if err := checkSum(file, e, sum[:]); err != nil {
			return State{}, nil, err
		}
		group, err := decodeGroup(content)
		if err != nil {
			return State{}, nil, &DamagedError{file, err}
		}
		groups[groupOf(name)] = group
	}
	return m.State, groups, nil
}

// checkName reports a checkpoint whose folder has another's name.
func checkName(path string, s State) error {
	if want := Name(s.Step); filepath.Base(path) != want {
		return &DamagedError{filepath.Join(path, stateFile), fmt.Errorf("holds step %d, whose folder is called %s", s.Step, want)}
	}
	return nil
}

// mostState is the most bytes of a state.json, which has some hundred.
const mostState = 1 << 26

func readManifest(path string) (*manifest, error) {
	file := filepath.Join(path, stateFile)
	b, err := atomicfile.Read(file, mostState)
	if odd, ok := errors.AsType[*atomicfile.OddError](err); ok {
		return nil, &DamagedError{file, errors.New(odd.Is)}
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, &DamagedError{path, errors.New("not a folder")}
	}
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("checkpoint %w", err)
		}
		return nil, &DamagedError{file, errors.New("missing")}
	}
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, &DamagedError{file, err}
	}
	return m, nil
}

func checkSize(file string, e entry) error {
	st, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &DamagedError{file, errors.New("missing")}
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return &DamagedError{file, errors.New("not a regular file")}
	case st.Size() != e.Bytes:
		return &DamagedError{file, fmt.Errorf("%d bytes, expected %d", st.Size(), e.Bytes)}
	}
	return nil
}

func checkSum(file string, e entry, sum []byte) error {
	if got := hex.EncodeToString(sum); got != e.SHA256 {
		return &DamagedError{file, fmt.Errorf("SHA-256 is %s, expected %s", got, e.SHA256)}
	}
	return nil
}
