package main

import "fmt"

// set is an instruction set: vectors of 16 channels are one register of AVX-512, and
// two of AVX2, worked on one after the other. Maps use 12 registers and up to seven
// constants, of which AVX2 has four in registers and the others in memory.
type set struct {
	name, title  string
	register     string
	bytes        int
	firstConst   int // register
	inRegisters  int // constants
	loadConstant string
}

var sets = []set{
	{"AVX512", "AVX-512", "Z", 64, 24, 7, "VBROADCASTSS"},
	{"AVX2", "AVX2", "Y", 32, 12, 4, "VMOVUPS"},
}

func (s set) constant(i int) string {
	if i < s.inRegisters {
		return fmt.Sprintf("%s%d", s.register, s.firstConst+i)
	}
	return fmt.Sprintf("%d(R9)", 32*i)
}

// mapping is one of the five maps of a scheme: see type scheme. Its points are ±a, ±b,
// infinity and, if z is 1, zero; pair p is ±a or ±b. What belongs to a pair is kept as
// its even and its odd part, as the polynomials of x and -x differ in the sign of the
// odd powers only.
type mapping struct {
	name string
	emit func(*body)
}

var (
	zeros = []int{0, 1}
	maps  = []mapping{{"input", input}, {"output", output}, {"spread", spread}, {"filter", filter}, {"gather", gather}}
)

// Constants, by map: scheme.bind has their values.
const (
	point, square = 0, 2 // of input, output, spread: those of pair p are point+p, square+p
	cube          = 4    // of output, spread
	sum, product  = 4, 5 // of input: a²+b², a²b²
	norm          = 1    // of filter, gather: 1/N of pair p; 1/N(0) is constant 0
	tapPoint      = 3
	tapSquare     = 5
)

// input is Bᵀ: the row of a point has the coefficients of Π (t - y) over all other
// points y; that of infinity over all.
//
//	±a:  t^z (t ± a)(t² - b²) = t^z (t³ - b²t) ± a·t^z (t² - b²)
//	0:   (t² - a²)(t² - b²) = t⁴ - (a²+b²)t² + a²b²;  infinity: t^z times that
func input(c *body) {
	x, z := c.load(5+c.z), c.z
	var even, odd, plus [2]int
	for p := range 2 {
		even[p], odd[p] = c.copy(x[z+3]), c.copy(x[z+2])
	}
	for p := range 2 {
		c.op("VFNMADD231PS", square+1-p, x[z+1], even[p])
		c.op("VFNMADD231PS", square+1-p, x[z], odd[p])
	}
	for p := range 2 {
		plus[p] = c.copy(even[p])
	}
	for i := range 1 + z {
		c.op("VFNMADD231PS", sum, x[i+2], x[i+4])
	}
	for p := range 2 {
		c.op("VFMADD231PS", point+p, odd[p], plus[p])
		c.op("VFNMADD231PS", point+p, odd[p], even[p])
	}
	for i := range 1 + z {
		c.op("VFMADD231PS", product, x[i], x[i+4])
	}
	c.store(x[4:4+z], plus[0], even[0], plus[1], even[1], x[4+z])
}

// output is Aᵀ: row i has the powers xⁱ of all points, infinity counts in the last.
func output(c *body) {
	x, z := c.load(5+c.z), c.z
	var even, odd [2]int
	for p := range 2 {
		even[p], odd[p] = c.add(x[z+2*p+1], x[z+2*p]), c.subtract(x[z+2*p+1], x[z+2*p])
	}
	if z == 1 {
		c.to("VADDPS", even[0], x[0], x[0])
	} else {
		c.to("VADDPS", even[1], even[0], x[0])
	}
	first, second := c.multiply(point, odd[0]), c.multiply(square, even[0])
	c.op("VFMADD231PS", cube, odd[0], x[4+z])
	if z == 1 {
		c.to("VADDPS", even[1], x[0], x[0])
	}
	c.op("VFMADD231PS", point+1, odd[1], first)
	c.op("VFMADD231PS", square+1, even[1], second)
	c.op("VFMADD231PS", cube+1, odd[1], x[4+z])
	c.store(nil, x[0], first, second, x[4+z])
}

// spread is A: Σ of xⁱ times number i.
func spread(c *body) {
	x, z := c.load(4), c.z
	var even, odd [2]int
	even[0], even[1] = c.copy(x[0]), x[0]
	if z == 1 { // number 0 is a result
		even[1] = c.copy(x[0])
	}
	for p := range 2 {
		odd[p] = c.multiply(point+p, x[1])
	}
	for p := range 2 {
		c.op("VFMADD231PS", square+p, x[2], even[p])
	}
	for p := range 2 {
		c.op("VFMADD231PS", cube+p, x[3], odd[p])
	}
	c.store(x[:z], c.add(odd[0], even[0]), c.subtract(odd[0], even[0]), c.add(odd[1], even[1]), c.subtract(odd[1], even[1]), x[3])
}

// filter is G: as spread, and then times 1/N(x). N(-x) is N(x) with a zero, and -N(x)
// without.
func filter(c *body) {
	x, z := c.load(2+c.z), c.z
	even, odd := [2]int{x[0], x[0]}, [2]int{}
	for p := range 2 {
		if z == 1 {
			even[p] = c.copy(x[0])
		}
		odd[p] = c.multiply(tapPoint+p, x[1])
	}
	if z == 1 {
		for p := range 2 {
			c.op("VFMADD231PS", tapSquare+p, x[2], even[p])
		}
		c.scale(0, x[0])
	}
	var r []int
	for p := range 2 {
		if z == 1 {
			r = append(r, c.add(odd[p], even[p]), c.subtract(odd[p], even[p]))
		} else {
			r = append(r, c.add(even[p], odd[p]), c.subtract(even[p], odd[p]))
		}
	}
	for i := range r {
		c.scale(norm+i/2, r[i])
	}
	c.store(x[:z], r[0], r[1], r[2], r[3], x[1+z])
}

// gather is Gᵀ: Σ over the points of xⁱ/N(x), infinity counts in the last.
func gather(c *body) {
	x, z := c.load(5+c.z), c.z
	var even, odd [2]int // powers of x/N(x)
	for p := range 2 {
		even[p], odd[p] = c.add(x[z+2*p+1], x[z+2*p]), c.subtract(x[z+2*p+1], x[z+2*p])
		if z == 0 {
			even[p], odd[p] = odd[p], even[p]
		}
	}
	if z == 1 {
		c.scale(0, x[0])
	}
	for p := range 2 {
		c.scale(norm+p, even[p])
		c.scale(norm+p, odd[p])
	}
	if z == 0 {
		c.to("VADDPS", even[1], even[0], even[0])
		c.op("VFMADD231PS", tapPoint, odd[0], x[4])
		c.op("VFMADD231PS", tapPoint+1, odd[1], x[4])
		c.store(nil, even[0], x[4])
		return
	}
	c.to("VADDPS", even[0], x[0], x[0])
	first := c.multiply(tapPoint, odd[0])
	c.op("VFMADD231PS", tapSquare, even[0], x[5])
	c.to("VADDPS", even[1], x[0], x[0])
	c.op("VFMADD231PS", tapPoint+1, odd[1], first)
	c.op("VFMADD231PS", tapSquare+1, even[1], x[5])
	c.store(nil, x[0], first, x[5])
}

// body is the code at one column, for the channels from offset bytes on.
type body struct {
	*code
	set
	offset, z int
	used      int // registers
}

func (b *body) v(r int) string { return fmt.Sprintf("%s%d", b.register, r) }

func (b *body) fresh() int {
	b.used++
	if b.used > 12 {
		panic("a map needs more than 12 registers")
	}
	return b.used - 1
}

// load is numbers 0 … n-1 of the sequence.
func (b *body) load(n int) (x []int) {
	for i := range n {
		x = append(x, b.fresh())
		b.line("MOVQ (pass_src+%d)(R15), AX", 8*i)
		b.line("VMOVUPS %d(AX)(R13*1), %s", b.offset, b.v(x[i]))
	}
	return x
}

// store writes the result: maybe one of point zero, and the rest.
func (b *body) store(zero []int, rest ...int) {
	b.line("MOVQ R12, BX")
	for i, r := range append(append([]int(nil), zero...), rest...) {
		if i > 0 {
			b.line("ADDQ R8, BX")
		}
		b.line("VMOVUPS %s, %d(BX)", b.v(r), b.offset)
	}
}

// op is dst ± constant · x.
func (b *body) op(name string, constant, x, dst int) {
	b.line("%s %s, %s, %s", name, b.constant(constant), b.v(x), b.v(dst))
}

// to is an instruction on three registers.
func (b *body) to(name string, y, x, dst int) {
	b.line("%s %s, %s, %s", name, b.v(y), b.v(x), b.v(dst))
}

func (b *body) scale(constant, x int) { b.op("VMULPS", constant, x, x) }

func (b *body) multiply(constant, x int) int {
	r := b.fresh()
	b.op("VMULPS", constant, x, r)
	return r
}

func (b *body) copy(x int) int {
	r := b.fresh()
	b.line("VMOVAPS %s, %s", b.v(x), b.v(r))
	return r
}

// add is x + y, subtract x - y.
func (b *body) add(y, x int) int {
	r := b.fresh()
	b.to("VADDPS", y, x, r)
	return r
}

func (b *body) subtract(y, x int) int {
	r := b.fresh()
	b.to("VSUBPS", y, x, r)
	return r
}
