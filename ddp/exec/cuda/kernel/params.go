package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// params is the struct that a kernel is given, under construction: its declaration in
// C, and what is in it. Fields lie at multiples of their size, as in C.
type params struct {
	decl   strings.Builder
	fields []field
	size   int
}

// field is eight or four bytes of the argument.
type field struct {
	at, size int
	kind     fieldKind
	value    int    // of the plan
	bits     uint64 // a number, or what is added to an address
}

type fieldKind uint8

const (
	numberField fieldKind = iota
	valueField
	scratchField
	counterField
	faultField
)

func (p *params) add(size int, f field) {
	f.at, f.size = (p.size+size-1)/size*size, size
	p.size = f.at + size
	p.fields = append(p.fields, f)
}

func (p *params) declare(ctype, name string) { fmt.Fprintf(&p.decl, "\t%s%s;\n", ctype, name) }

// pointer is a field that points to a value; ctype is that of its elements.
func (p *params) pointer(ctype, name string, value int) {
	p.declare(ctype+" *", name)
	p.add(8, field{kind: valueField, value: value})
}

// scratch is a field that points into the scratch memory.
func (p *params) scratch(ctype, name string, offset int) {
	p.declare(ctype+" *", name)
	p.add(8, field{kind: scratchField, bits: uint64(offset)})
}

// counter is a field that points to u32 counters of blocks, that many of the step's before
// them.
func (p *params) counter(name string, before int) {
	p.declare("u32 *", name)
	p.add(8, field{kind: counterField, bits: uint64(4 * before)})
}

// fault is the fields by which a kernel tells of an index out of range.
func (p *params) fault(step int) {
	p.declare("i64 *", "fault")
	p.add(8, field{kind: faultField})
	p.int("step", step)
}

// int is an i64.
func (p *params) int(name string, v int) {
	p.declare("i64 ", name)
	p.add(8, field{bits: uint64(v)})
}

// small is an i32.
func (p *params) small(name string, v int) {
	p.declare("i32 ", name)
	p.add(4, field{bits: uint64(uint32(int32(v)))})
}

// float and double are numbers.
func (p *params) float(name string, v float64) {
	p.declare("float ", name)
	p.add(4, field{bits: uint64(math.Float32bits(float32(v)))})
}

func (p *params) double(name string, v float64) {
	p.declare("double ", name)
	p.addDouble(v)
}

func (p *params) addDouble(v float64) { p.add(8, field{bits: math.Float64bits(v)}) }

// quot is a divisor, at least 1.
func (p *params) quot(name string, d int) {
	p.declare("quot ", name)
	p.addQuot(d)
}

// addQuot is the fields of a quot: floor(n/d) = (hi(n·m) + n) >> s for n < 2^31, where
// 2^s is the least power of 2 that is not below d, and m = 2^32·(2^s − d)/d + 1.
func (p *params) addQuot(d int) {
	p.add(8, field{bits: uint64(d)})
	var m, s uint64
	if d < 1<<31 {
		s = uint64(bits.Len64(uint64(d - 1)))
		m = (1<<32)*(1<<s-uint64(d))/uint64(d) + 1
	}
	p.add(4, field{bits: m & math.MaxUint32})
	p.add(4, field{bits: s})
}

// text is the declaration of the struct.
func (p *params) text() string { return "struct NAME_args {\n" + p.decl.String() + "};\n" }

// bytes packs the argument.
func (p *params) bytes(m Memory) []byte {
	b := make([]byte, (p.size+7)/8*8)
	for _, f := range p.fields {
		v := f.bits
		switch f.kind {
		case valueField:
			v += m.Value(f.value)
		case scratchField:
			v += m.Scratch
		case counterField:
			v += m.Counters
		case faultField:
			v += m.Fault
		}
		if f.size == 4 {
			binary.LittleEndian.PutUint32(b[f.at:], uint32(v))
		} else {
			binary.LittleEndian.PutUint64(b[f.at:], v)
		}
	}
	return b
}
