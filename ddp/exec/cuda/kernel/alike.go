package kernel

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"

	"ebtrain/ddp/exec/plan"
)

// Alike is one launch of the kernels of several steps, which are equal but for their
// arguments: those lie in a table in the device's memory, where each block finds its
// own. What a step computes has the bits of its own launch, since blocks divide its
// work as they do there.
type Alike struct {
	Launch
	steps    []int
	launches []Launch // by step
}

// AlikeName is what steps have in common that can be in one launch: their kernel. It is
// "" for a step that must be alone: one with several kernels, or that tells of indices
// out of range.
func AlikeName(p *plan.Plan, i int) string {
	list, err := For(p, i)
	if err != nil || len(list) != 1 || list[0].UsesFault() {
		return ""
	}
	return list[0].Entry
}

// ForAlike is the launch of steps of one AlikeName.
func ForAlike(p *plan.Plan, steps []int) (*Alike, error) {
	a := &Alike{steps: steps}
	grid := 0
	for _, i := range steps {
		list, err := For(p, i)
		if err != nil {
			return nil, err
		}
		if len(list) != 1 || len(a.launches) > 0 && list[0].Entry != a.launches[0].Entry {
			return nil, fmt.Errorf("step %d, %v, is not done as step %d is", i, p.Steps[i].Op, steps[0])
		}
		a.launches = append(a.launches, list[0])
		grid += list[0].Grid
	}
	one := &a.launches[0]
	a.Launch = Launch{Entry: alikeEntry(one.Entry), Source: alikeText(one), Grid: grid}
	return a, nil
}

// Counters is how many bytes of counters step number k of the launch needs, as Memory says.
func (a *Alike) Counters(k int) int { return a.launches[k].Counters }

// Table is the memory that the kernel reads, to be put on the device once, at a multiple
// of 16 bytes: the arguments of all steps, whose memories are given, and the first block of
// each.
func (a *Alike) Table(memory func(step int) Memory) []byte {
	var table, first []byte
	grid := 0
	for k := range a.launches {
		table = append(table, a.launches[k].Args(memory(a.steps[k]))...)
		first = binary.LittleEndian.AppendUint32(first, uint32(grid))
		grid += a.launches[k].Grid
	}
	return append(table, first...)
}

// Args is the kernel's argument, where the table lies at that address.
func (a *Alike) Args(table uint64) []byte {
	args := uint64(len(a.launches[0].args.bytes(Memory{Value: func(int) uint64 { return 0 }})))
	out := binary.LittleEndian.AppendUint64(nil, table)
	out = binary.LittleEndian.AppendUint64(out, table+args*uint64(len(a.launches)))
	return binary.LittleEndian.AppendUint64(out, uint64(len(a.launches)))
}

func alikeEntry(entry string) string { return strings.Replace(entry, "_", "Alike_", 1) }

var (
	kernelHead  = regexp.MustCompile(`(?m)^(KERNEL|KERNEL_SYNC|KERNEL_FOUR)\((\w+), (\d+), struct \w+\) \{$`)
	kernelBlock = regexp.MustCompile(`\bBID\b`)
	kernelArg   = regexp.MustCompile(`\ba\.`)
)

// alikeText makes a kernel's text that of a function, and adds the kernel that calls it
// with the argument of the step whose block it is. It reads the argument where it lies:
// a copy would be each thread's, in twice the registers, or in local memory if it has
// tables.
func alikeText(l *Launch) string {
	at := kernelHead.FindStringSubmatchIndex(l.Source)
	head, block := l.Source[at[2]:at[3]], l.Source[at[6]:at[7]]
	body := kernelArg.ReplaceAllString(kernelBlock.ReplaceAllString(l.Source[at[1]:], "bid"), "a->")
	return l.Source[:at[0]] + fmt.Sprintf("DEVICE void %s(const struct %[1]s_args *a, const int bid) {", l.Entry) + body + fmt.Sprintf(`
struct %[1]s_args {
	const struct %[2]s_args *each;
	const i32 *first;
	i64 n;
};

%[3]s(%[1]s, %[4]s, struct %[1]s_args) {
	int k = 0, end = (int)a.n;
	while (end - k > 1) {
		const int middle = (k + end) / 2;
		if (a.first[middle] <= BID)
			k = middle;
		else
			end = middle;
	}
	%[2]s(&a.each[k], BID - a.first[k]);
}
`, alikeEntry(l.Entry), l.Entry, head, block)
}
