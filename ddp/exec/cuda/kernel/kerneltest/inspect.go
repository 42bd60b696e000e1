// Package kerneltest says of a kernel that NVIDIA's compiler has translated whether it is
// what its text was written to be: nothing is said against it, a block of it fits onto a
// device, nothing is contracted or approximated that the text does not ask for, what moves
// vectors moves them at once, and blocks that meet do so behind a count that orders what they wrote.
//
// What it looks at is PTX and what the compiler says of registers, so it needs NVRTC and
// no GPU. All functions are pure.
package kerneltest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ebtrain/collective/cuda"
)

// What any device since sm_75 gives a block, and a multiprocessor of sm_90 all of its blocks.
const (
	blockRegisters = 65536
	blockShared    = 48 << 10
	sharedInAll    = 228 << 10
	threadsInAll   = 2048
)

// Text is a kernel's.
type Text struct {
	Entry, Source string
	Block         int // threads
}

// Faults says what is wrong with a text's translation, in sentences; nothing, usually.
func (k Text) Faults(t cuda.Translation) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, w := range t.Warnings() {
		say("the compiler says: %s", w)
	}
	u, ok := t.Usage()[k.Entry]
	if !ok || u.Registers == 0 {
		say("nothing is said of its registers:\n%s", t.Log)
	}
	if n := rounded(u.Registers) * k.Block; n > blockRegisters {
		say("%d registers of %d threads are more than the %d of a block: it could not be launched", u.Registers, k.Block, blockRegisters)
	}
	if u.Shared > blockShared {
		say("%d bytes of shared memory, of at most %d", u.Shared, blockShared)
	}
	list = append(list, k.arithmetic(t.PTX)...)
	if strings.Contains(k.body(), "LAST(") && !meets.MatchString(t.PTX) {
		say("its blocks do not meet behind a count that orders what they wrote: want %v in the PTX", meets)
	}
	return list
}

// body is the text without its definitions.
func (k Text) body() string {
	lines := strings.Split(k.Source, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "#define ") }), "\n")
}

var (
	// functions are those of CUDA's own library, whose code has what ours must not have.
	functions = regexp.MustCompile(`\b(expf?|expm1f?|logf?|log1pf?|tanhf?|sinf?|cosf?|erff?|powf?)\(`)
	fused     = regexp.MustCompile(`\bfma\.[\w.]+`)
	// approximate instructions; the quick exponentials and reciprocals are the library's.
	approximate = regexp.MustCompile(`\b(div|sqrt)\.(approx|full)[\w.]*|\b(add|sub|mul|fma|mad|div|sqrt)\.[\w.]*ftz[\w.]*`)
	inLibrary   = regexp.MustCompile(`\b\w+\.(approx|ftz)[\w.]*`)
	// meets is how blocks meet: all threads of one have written before one thread counts it,
	// which releases that and acquires what others released, and none reads before.
	meets = regexp.MustCompile(`(?s)bar(rier)?\.sync.*atom\.acq_rel\.gpu\.global\.inc\.u32.*bar(rier)?\.sync`)
)

// arithmetic says what is computed otherwise than the text has it.
func (k Text) arithmetic(ptx string) (list []string) {
	body := k.body()
	if found := approximate.FindString(ptx); found != "" {
		list = append(list, "it computes by "+found)
	}
	if functions.MatchString(body) {
		return list
	}
	if found := inLibrary.FindString(ptx); found != "" {
		list = append(list, "it computes by "+found+", and calls no function")
	}
	if found := fused.FindString(ptx); found != "" && !strings.Contains(body, "FMAF(") && !strings.Contains(body, "FMA(") {
		list = append(list, "a product and a sum were contracted, to "+found)
	}
	return list
}

var vectorHelper = regexp.MustCompile(`(?m)^DEVICE void ((load|store)\d+_\w+)\(`)

// Scattered are the functions of a text that move a vector, where the kernel moves its
// elements one by one. The compiler puts vectors together again from what it took apart,
// as far as it sees that addresses are neighbours, so this is slow and not wrong.
func (k Text) Scattered(t cuda.Translation) (names []string) {
	for _, m := range vectorHelper.FindAllStringSubmatchIndex(k.Source, -1) {
		name, op := k.Source[m[2]:m[3]], map[string]string{"load": "ld", "store": "st"}[k.Source[m[4]:m[5]]]
		body, after, _ := strings.Cut(k.Source[m[1]:], "\n}")
		if !strings.Contains(after, name+"(") {
			continue
		}
		var width string
		switch {
		case strings.Contains(body, "uint4"):
			width = "v4"
		case strings.Contains(body, "uint2"):
			width = "v2"
		default:
			continue
		}
		if !regexp.MustCompile(`\b` + op + `\.(global\.)?(nc\.)?` + width).MatchString(t.PTX) {
			names = append(names, name)
		}
	}
	return names
}

// Blocks is how many blocks of so many threads a multiprocessor of sm_90 runs at once.
func Blocks(u cuda.Usage, threads int) int {
	n := threadsInAll / threads
	if u.Registers > 0 {
		n = min(n, blockRegisters/(rounded(u.Registers)*threads))
	}
	return min(n, sharedInAll/(u.Shared+1024)) // the system's own of each block
}

// rounded is in how many registers a thread's come.
func rounded(n int) int { return (n + 7) / 8 * 8 }
