package supervise

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Streams says which streams of each local rank something applies to, in the
// notation of torchrun: a set of bits, 1 for standard output and 2 for
// standard error, the same for all ranks or one by one.
type Streams struct {
	All  int
	Each map[int]int // by local rank; these override All
}

// ParseStreams reads "0", "1", "2", "3" (none, stdout, stderr, both) for all
// ranks, or "0:1,1:3" for some.
func ParseStreams(s string) (Streams, error) {
	if !strings.Contains(s, ":") {
		bits, err := streamBits(s)
		return Streams{All: bits}, err
	}
	out := Streams{Each: map[int]int{}}
	for part := range strings.SplitSeq(s, ",") {
		rank, which, _ := strings.Cut(part, ":")
		local, err := strconv.Atoi(rank)
		if err != nil || local < 0 {
			return Streams{}, fmt.Errorf("%q: want RANK:STREAMS, for example 0:1,1:3", part)
		}
		if out.Each[local], err = streamBits(which); err != nil {
			return Streams{}, err
		}
	}
	return out, nil
}

func streamBits(s string) (int, error) {
	bits, err := strconv.Atoi(s)
	if err != nil || bits < 0 || bits > 3 {
		return 0, fmt.Errorf("%q: want 0 (none), 1 (stdout), 2 (stderr) or 3 (both)", s)
	}
	return bits, nil
}

// has reports whether a stream of a local rank is included.
func (s Streams) has(local, stream int) bool {
	bits, ok := s.Each[local]
	if !ok {
		bits = s.All
	}
	return bits&(1<<stream) != 0
}

// Output says where the ranks' output goes besides the console.
type Output struct {
	Dir      string  // directory of rank-N.out; "" for no files
	Redirect Streams // to the file only
	Tee      Streams // to the file and the console
	Filter   []int   // local ranks shown on the console; nil for all
}

func (o Output) toFile(local, stream int) bool {
	return o.Dir != "" && (o.Redirect.has(local, stream) || o.Tee.has(local, stream))
}

func (o Output) toConsole(local, stream int) bool {
	return !o.Redirect.has(local, stream) && (o.Filter == nil || slices.Contains(o.Filter, local))
}
