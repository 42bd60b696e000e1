package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebtrain/ddp/exec/plan"
)

// Batch is one launch of several chains of fused steps (plan.Launch): for steps that are
// so small that the launch is what they cost. Its kernel holds the steps' own kernels as
// functions, each once, and calls them as a table in the device's memory says. A chain of
// several steps is done by one block, step after step; a step that is alone in its chain
// has the blocks of its own launch. So what a step computes has the bits of its own launch.
type Batch struct {
	Launch
	blocks []batchBlock
	calls  []batchCall
	steps  map[int][]Launch
}

// batchBlock is what a block does: calls from one on, of each the parts part, part + parts, ….
type batchBlock struct{ call, count, part, parts int }

// batchCall is a kernel of a step.
type batchCall struct {
	step int
	l    *Launch
	of   int // the function
}

// Batches says whether step i can be in a batch: it is fused, and its arrays are within
// reach of 32-bit indices.
func Batches(p *plan.Plan, i int) bool {
	_, err := forBatch(p, i)
	return err == nil
}

// forBatch is the kernels of a step that Batches.
func forBatch(p *plan.Plan, i int) ([]Launch, error) {
	if _, ok := p.Steps[i].Op.(*plan.Fused); !ok {
		return nil, fmt.Errorf("step %d, %v, is none for a batch: want a fused one", i, p.Steps[i].Op)
	}
	list, err := For(p, i)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(list, func(l Launch) bool { return l.text.wide }) {
		return nil, fmt.Errorf("step %d, %v, is none for a batch: its arrays are beyond 32-bit indices", i, p.Steps[i].Op)
	}
	return list, nil
}

// ForChains is the launch of chains, the steps of each in order; every step must be one
// that Batches.
func ForChains(p *plan.Plan, chains [][]int) (*Batch, error) {
	b := &Batch{steps: map[int][]Launch{}}
	for _, c := range chains {
		first, parts := len(b.calls), 1
		for _, i := range c {
			list, err := forBatch(p, i)
			if err != nil {
				return nil, err
			}
			b.steps[i] = list
			for k := range list {
				b.calls = append(b.calls, batchCall{step: i, l: &list[k]})
			}
			if len(c) == 1 && len(list) == 1 {
				parts = list[0].Grid
			}
		}
		for part := range parts {
			b.blocks = append(b.blocks, batchBlock{first, len(b.calls) - first, part, parts})
		}
	}
	b.write()
	return b, nil
}

// Counters is how many bytes of counters a step needs, as Memory says.
func (b *Batch) Counters(step int) int { return Counters(b.steps[step]) }

// Program is the memory that the kernel reads, to be put on the device once, at a multiple
// of 16 bytes: what blocks do, what is called, and the arguments of all calls, whose
// memories are given.
func (b *Batch) Program(memory func(step int) Memory) []byte {
	var program, args []byte
	for _, k := range b.blocks {
		for _, v := range []int{k.call, k.count, k.part, k.parts} {
			program = binary.LittleEndian.AppendUint32(program, uint32(v))
		}
	}
	behind := len(program) + 16*len(b.calls)
	for _, c := range b.calls {
		program = binary.LittleEndian.AppendUint64(program, uint64(behind+len(args)))
		program = binary.LittleEndian.AppendUint32(program, uint32(c.of))
		program = binary.LittleEndian.AppendUint32(program, uint32(c.l.Grid))
		args = append(args, c.l.Args(memory(c.step))...)
		args = append(args, make([]byte, -len(args)&15)...)
	}
	return append(program, args...)
}

// Args is the kernel's argument, where the program lies at that address.
func (b *Batch) Args(program uint64) []byte {
	args := binary.LittleEndian.AppendUint64(nil, program)
	return binary.LittleEndian.AppendUint64(args, program+uint64(16*len(b.blocks)))
}

// write makes the kernel's text: functions are in the order of their names, so batches of
// the same kernels are one kernel.
func (b *Batch) write() {
	each := map[string]*Launch{}
	for _, c := range b.calls {
		each[c.l.Entry] = c.l
	}
	names := make([]string, 0, len(each))
	for name := range each {
		names = append(names, name)
	}
	slices.Sort(names)
	for k := range b.calls {
		b.calls[k].of, _ = slices.BinarySearch(names, b.calls[k].l.Entry)
	}
	s := &source{}
	var functions, cases strings.Builder
	shared, head := 0, "KERNEL"
	for k, name := range names {
		l := each[name]
		for _, h := range l.text.helpers {
			s.helper(h)
		}
		body, bytes, syncs := asFunction(l)
		fmt.Fprintf(&functions, "%s\n%s\n", l.text.args, body)
		fmt.Fprintf(&cases, "\t\t\tcase %d: %s((const struct %[2]s_args *)at, bid, shared); break;\n", k, name)
		shared = max(shared, bytes)
		if syncs {
			head = "KERNEL_SYNC"
		}
	}
	between := ""
	if head == "KERNEL_SYNC" || slices.ContainsFunc(b.blocks, func(k batchBlock) bool { return k.count > 1 }) {
		head, between = "KERNEL_SYNC", "\t\t\tif (k > 0 || bid > b.part)\n\t\t\t\tSYNC();\n"
	}
	text := fmt.Sprintf(`%[1]sstruct bblock {
	i32 call, count, part, parts;
};
struct bcall {
	i64 args;
	i32 of, grid;
};
struct NAME_args {
	const struct bblock *blocks;
	const struct bcall *calls;
};
%[2]s(NAME, %[3]d, struct NAME_args) {
	SHARED(double, shared, [%[4]d]);
	const struct bblock b = a.blocks[BID];
	for (int k = 0; k < b.count; k++) {
		const struct bcall c = a.calls[b.call + k];
		const u8 *at = (const u8 *)a.blocks + c.args;
		for (int bid = b.part; bid < c.grid; bid += b.parts) {
%[5]s			switch (c.of) {
%[6]s			}
		}
	}
}
`, functions.String(), head, Block, max(1, shared/8), between, cases.String())
	b.Launch = s.whole("batch", len(b.blocks), text)
}

var (
	kernelShared = regexp.MustCompile(`SHARED\((\w+), (\w+), \[(\d+)\]\);`)
	sharedSizes  = map[string]int{"double": 8, "i64": 8, "float": 4}
)

// asFunction makes a kernel's text that of a function, of its argument where that lies,
// the block that it is and memory that the block's threads share: so many bytes. Functions
// that are called one after the other share that, too.
func asFunction(l *Launch) (text string, shared int, syncs bool) {
	at := kernelHead.FindStringSubmatchIndex(l.text.body)
	syncs = l.text.body[at[2]:at[3]] != "KERNEL"
	body := kernelArg.ReplaceAllString(kernelBlock.ReplaceAllString(l.text.body[at[1]:], "bid"), "a->")
	body = kernelShared.ReplaceAllStringFunc(body, func(s string) string {
		m := kernelShared.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[3]) // digits
		s = fmt.Sprintf("%s *const %s = (%[1]s *)(shared + %[3]d);", m[1], m[2], shared/8)
		shared += (n*sharedSizes[m[1]] + 15) / 16 * 16
		return s
	})
	return fmt.Sprintf("FUNCTION void %s(const struct %[1]s_args *a, const int bid, double *shared) {%s", l.Entry, body), shared, syncs
}

// whole is a kernel whose text, behind the helpers, is given; NAME stands for its name.
func (s *source) whole(kind string, grid int, text string) Launch {
	text = s.head() + text
	sum := sha256.Sum256([]byte(dialect + text))
	name := kind + "_" + hex.EncodeToString(sum[:8])
	return Launch{Entry: name, Source: dialect + strings.ReplaceAll(text, "NAME", name), Grid: grid}
}
