package nccl

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"ebtrain/collective/cuda"
)

// Floor is the oldest NCCL that serves, as NCCL counts: 2.19.0. Before, a
// communicator could not be aborted safely from a second thread, and there was
// no memory to register.
const Floor = 21900

// loaded is libnccl, which a process loads once and keeps.
var loaded struct {
	sync.Mutex
	api     api
	version int
}

// load opens NCCL and says its version.
func load() (api, int, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.api != nil {
		return loaded.api, loaded.version, nil
	}
	l, err := cuda.Open(cuda.NCCL)
	if err != nil {
		return nil, 0, err
	}
	a, err := bind(l)
	if err != nil {
		return nil, 0, old(l, err)
	}
	v, code := a.version()
	if code != success {
		return nil, 0, &Error{Call: "ncclGetVersion", Code: code, Text: a.text(code)}
	}
	loaded.api, loaded.version = a, v
	return a, v, nil
}

// old says of a library that lacks functions that it is old.
func old(l *cuda.Library, err error) error {
	return fmt.Errorf("%s lacks a function: %w: %w", l.Path(), errOld, err)
}

var errOld = errors.New("it is older than what is called")

// versionText is a version as people write it. Before 2.9 the minor had two
// digits less.
func versionText(v int) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
}

// quietNVLS turns off sums in the switches of NVLink, whose order differs from
// call to call, unless the user has said what he wants. NCCL reads it once.
func quietNVLS() error {
	if _, set := os.LookupEnv(nvlsVariable); set {
		return nil
	}
	return os.Setenv(nvlsVariable, "0")
}

// nvlsAllowed says whether they may be used; asked is what the options say.
func nvlsAllowed(asked bool) bool {
	if v, set := os.LookupEnv(nvlsVariable); set {
		return v != "0"
	}
	return asked
}

const nvlsVariable = "NCCL_NVLS_ENABLE"

// Why NCCL cannot connect these ranks, for errors.Is. All ranks get the same
// error, before anything is begun, and the group below can still be used.
var (
	ErrMissing = errors.New("NCCL is missing")
	ErrShared  = errors.New("ranks share a GPU, which NCCL refuses")
	ErrVersion = errors.New("this NCCL does not serve")
	ErrModels  = errors.New("the GPUs of the ranks differ")
)
