package kernel

import (
	"encoding/binary"
	"strings"
)

// piece is memory of the device that a kernel may touch: the operands that it reads, and what
// it may store to besides. What lies beyond is there in tests, and some of it on a GPU, so that
// a load of which nothing becomes is seen nowhere else; on a user's GPU it is what ends the
// program, as memory that is not mapped, if an array lies at the end of an allocation.
type piece struct {
	at, bytes int
	writable  bool
}

// append puts the piece behind a command of the process that runs kernels.
func (p piece) append(command []byte) []byte {
	size := uint64(p.bytes)
	if p.writable {
		size |= 1 << 63
	}
	command = binary.LittleEndian.AppendUint64(command, uint64(deviceBase+p.at))
	return binary.LittleEndian.AppendUint64(command, size)
}

// watched says whether each access of a kernel is looked at. Groups take too long for that,
// as there are many, and kernels with 64-bit indices have the text of those with 32; with
// -kernels.all all are.
func watched(l *Launch) bool {
	if *all {
		return true
	}
	for _, kind := range []string{"fused", "reduce", "finish", "batch"} {
		if strings.HasPrefix(l.Entry, kind) {
			return false
		}
	}
	return !strings.Contains(l.Source, "typedef i64 idx;")
}

// watchFlags make gcc call what testdata/runner.c has for each access to memory, and end the
// process where an index is beyond an array of a thread's own, a vector does not lie at a
// multiple of its size, or a signed number overflows.
var watchFlags = []string{
	"-fsanitize=kernel-address", "--param", "asan-instrumentation-with-call-threshold=0", "--param", "asan-stack=0", "--param", "asan-globals=0",
	"-fsanitize=bounds,alignment,signed-integer-overflow,integer-divide-by-zero", "-fsanitize-undefined-trap-on-error",
}
