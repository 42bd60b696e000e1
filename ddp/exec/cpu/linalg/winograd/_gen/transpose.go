package main

import "fmt"

// transpositions are 16 × 16 floats in registers, between rows step apart, of which a
// mask takes the first taps, and columns one after the other.
func transpositions() string {
	c := &code{}
	c.WriteString(header + "#include \"textflag.h\"\n")
	c.begin("toColumnsAVX512(dst, src *float32, step, taps int)", "dst+0", "src+8", "step+16")
	for i := range 16 {
		c.line("VMOVUPS.Z (SI), K1, Z%d", i)
		c.line("ADDQ AX, SI")
	}
	c.transpose()
	for i := range 16 {
		c.line("VMOVUPS Z%d, %d(DI)", i, 64*i)
	}
	c.end()
	c.begin("toRowsAVX512(dst *float32, step int, src *float32, taps int)", "dst+0", "src+16", "step+8")
	for i := range 16 {
		c.line("VMOVUPS %d(SI), Z%d", 64*i, i)
	}
	c.transpose()
	for i := range 16 {
		c.line("VMOVUPS Z%d, K1, (DI)", i)
		c.line("ADDQ AX, DI")
	}
	c.end()
	return c.String()
}

func (c *code) begin(signature, dst, src, step string) {
	var name string
	for i, r := range signature {
		if r == '(' {
			name = signature[:i]
			break
		}
	}
	fmt.Fprintf(c, "\n// func %s: see type isa\nTEXT ·%s(SB), NOSPLIT, $0-32\n", signature, name)
	c.line("MOVQ %s(FP), DI", dst)
	c.line("MOVQ %s(FP), SI", src)
	c.line("MOVQ %s(FP), AX", step)
	c.line("MOVQ taps+24(FP), CX")
	c.line("MOVL $-1, BX")
	c.line("SHLL CX, BX")
	c.line("NOTL BX")
	c.line("KMOVW BX, K1")
	c.line("SHLQ $2, AX")
}

func (c *code) end() {
	c.line("VZEROUPPER")
	c.line("RET")
}

// transpose turns rows Z0 … Z15 into columns, by way of Z16 … Z31: pairs of numbers,
// pairs of pairs, then quarters of registers, twice.
func (c *code) transpose() {
	for i := range 8 {
		for j, half := range []string{"L", "H"} {
			c.line("VUNPCK%sPS Z%d, Z%d, Z%d", half, 2*i+1, 2*i, 16+2*i+j)
		}
	}
	for i := range 8 {
		from := 16 + i/2*4 + i%2 // and two further
		for j, half := range []string{"L", "H"} {
			c.line("VUNPCK%sPD Z%d, Z%d, Z%d", half, from+2, from, 2*i+j)
		}
	}
	c.quarters(0, 16, 4)
	c.quarters(16, 0, 8)
}

// quarters puts even and odd quarters of registers i and i+apart together.
func (c *code) quarters(from, to, apart int) {
	for group := 0; group < 16; group += 2 * apart {
		for j, parts := range []string{"88", "dd"} {
			for i := range apart {
				c.line("VSHUFF32X4 $0x%s, Z%d, Z%d, Z%d", parts, from+group+i+apart, from+group+i, to+group+j*apart+i)
			}
		}
	}
}
