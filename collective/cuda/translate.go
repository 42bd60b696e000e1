package cuda

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Translation is what the compiler makes of a source.
type Translation struct {
	CUBIN []byte
	PTX   string
	// Log is all that was said: warnings, and what Usage and Warnings read.
	Log string
}

// Translate compiles CUDA C for an architecture, as sm_90, without a device and without
// the cache, for those who look at what is made of a text. It needs NVRTC alone, the one
// that Compile uses. What is wrong with the source is a *CompileError.
func Translate(arch, name, source string, o CompileOptions) (Translation, error) {
	c, _, err := nvrtc()
	if err != nil {
		return Translation{}, err
	}
	return compile(c, name, source, append([]string{"--gpu-architecture=" + arch, "--ptxas-options=-v"}, o.Options...), true)
}

// CompilerVersion is NVRTC's, as 12.4. Without NVRTC the error is a *LoadError, or
// ErrNoCgo.
func CompilerVersion() (string, error) {
	c, _, err := nvrtc()
	if err != nil {
		return "", err
	}
	major, minor, code := c.version()
	return fmt.Sprintf("%d.%d", major, minor), checkCompiler(c, "nvrtcVersion", code)
}

// Usage is what a kernel takes of a device.
type Usage struct {
	Registers                      int // of each thread
	Shared                         int // bytes of each block
	Stack, SpillStores, SpillLoads int // bytes of each thread, in local memory
}

// What ptxas says of a kernel.
var (
	usageEntry = regexp.MustCompile(`^ptxas info\s*: Compiling entry function '(\w+)'`)
	usageFrame = regexp.MustCompile(`^(?:ptxas)?[\s.]*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usageRegs  = regexp.MustCompile(`^ptxas info\s*: Used (\d+) registers`)
	usageSmem  = regexp.MustCompile(`, (\d+) bytes smem`)
)

// Usage is what the kernels of a translation take, by their names.
func (t Translation) Usage() map[string]Usage {
	all := map[string]Usage{}
	entry := ""
	for line := range strings.Lines(t.Log) {
		if m := usageEntry.FindStringSubmatch(line); m != nil {
			entry = m[1]
			continue
		}
		u := all[entry]
		if m := usageFrame.FindStringSubmatch(line); m != nil && u.Registers == 0 {
			u.Stack, u.SpillStores, u.SpillLoads = digits(m[1]), digits(m[2]), digits(m[3])
		}
		if m := usageRegs.FindStringSubmatch(line); m != nil {
			u.Registers = digits(m[1])
			if m := usageSmem.FindStringSubmatch(line); m != nil {
				u.Shared = digits(m[1])
			}
		}
		if entry != "" {
			all[entry] = u
		}
	}
	return all
}

// digits is the number that a pattern of digits has found.
func digits(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err) // a kernel of 2^63 bytes
	}
	return n
}

// Warnings are the lines of the log that are none of usage.
func (t Translation) Warnings() (lines []string) {
	for line := range strings.Lines(t.Log) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "ptxas info") && !usageFrame.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
