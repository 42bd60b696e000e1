package env

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	maxCount = 1 << 20 // ranks, nodes, restarts: more is a typing mistake
	maxFD    = 1 << 20
)

// vars reads typed values from an environment and keeps the first error.
type vars struct {
	m   map[string]string
	err error
}

func newVars(environ []string) *vars {
	v := &vars{m: make(map[string]string, len(environ))}
	for _, kv := range environ {
		if key, value, ok := strings.Cut(kv, "="); ok {
			v.m[key] = value
		}
	}
	return v
}

func (v *vars) has(key string) bool { _, ok := v.m[key]; return ok }

func (v *vars) hasAny(keys ...string) bool { return v.first(keys...) != "" }

// first returns the first of keys that is set, or "".
func (v *vars) first(keys ...string) string {
	for _, k := range keys {
		if v.has(k) {
			return k
		}
	}
	return ""
}

func (v *vars) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

// number reads a whole number that must be set, min ≤ n ≤ max.
func (v *vars) number(key string, min, max int) int {
	s, ok := v.m[key]
	if !ok {
		v.fail("%s is not set although %s is: set both, or neither to run alone", key, v.companion(key))
		return min
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	switch {
	case err != nil:
		v.fail("%s=%q is not a whole number", key, s)
	case n < min || n > max:
		v.fail("%s=%d is out of range: want %d to %d", key, n, min, max)
	default:
		return n
	}
	return min
}

// optional is number with a default for an unset variable and no bound but 0.
func (v *vars) optional(key string, def int) int {
	if !v.has(key) {
		return def
	}
	return v.number(key, 0, maxCount)
}

func (v *vars) port(key string) int {
	if !v.has(key) {
		return 0
	}
	return v.number(key, 0, 65535)
}

// text reads a value that must be set and not empty.
func (v *vars) text(key string) string {
	if v.m[key] == "" {
		v.fail("%s is not set although %s is: the environment of ddplaunch was changed on the way", key, v.companion(key))
	}
	return v.m[key]
}

// agree fails if the optional variable key is set and is not want, the value
// of the variable named name.
func (v *vars) agree(name string, want int, key string) {
	if v.err != nil || !v.has(key) {
		return
	}
	if got := v.number(key, 0, maxCount); v.err == nil && got != want {
		v.fail("%s=%d contradicts %s=%d: unset one of them", name, want, key, got)
	}
}

// companion names a variable that is set and belongs with key.
func (v *vars) companion(key string) string {
	for _, c := range []string{
		"EBTRAIN_CONTROL_FD", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
		"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
		"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
	} {
		if c != key && v.has(c) {
			return c
		}
	}
	return "another variable of the same launcher"
}
