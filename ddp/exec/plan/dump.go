package plan

import (
	"fmt"
	"io"
	"strings"

	"ebtrain/ddp/graph"
)

// Dump writes the plan as text: each step with its operands' places, fused
// groups with their instructions. Equal graphs give equal text.
func (p *Plan) Dump(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "program %q: %d nodes, %d steps, arena %d bytes, buckets %d bytes\n",
		p.Name, p.LiveNodes, len(p.Steps), p.ArenaBytes, p.BucketBytes)
	for i := range p.Steps {
		p.dumpStep(&b, i)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plan) dumpStep(b *strings.Builder, i int) {
	s := &p.Steps[i]
	name := func(vs []int) []string {
		var n []string
		for _, v := range vs {
			n = append(n, p.name(v))
		}
		return n
	}
	fmt.Fprintf(b, "%4d ", i)
	in, out := name(s.In), name(s.Out)
	switch op := s.Op.(type) {
	case *Fused:
		fmt.Fprintf(b, "%s", op)
	case Wait, Start:
		fmt.Fprintf(b, "%s %s", op, strings.Join(append(in, out...), " "))
	default:
		fmt.Fprintf(b, "%s = %s %s", strings.Join(out, ", "), s.Op, strings.Join(in, " "))
	}
	if s.Scratch > 0 {
		fmt.Fprintf(b, " scratch %d at %d", s.Scratch, s.ScratchAt)
	}
	if s.Scope != "" {
		fmt.Fprintf(b, "  # %s", s.Scope)
	}
	b.WriteByte('\n')
	if f, ok := s.Op.(*Fused); ok {
		b.WriteString(f.body(in, out))
	}
}

// name says what and where a value is: %7@arena+512 f32[4,8], var "w".
func (p *Plan) name(v int) string {
	val := &p.Values[v]
	space, index, off := p.View(v)
	t := graph.Type{DType: val.DType, Shape: val.Dims}
	last := ""
	if val.Last {
		last = "nhwc"
	}
	switch space {
	case Input:
		return fmt.Sprintf("(input %q %v)", p.Inputs[index].Name, t)
	case Output:
		return fmt.Sprintf("(output %q %v)", p.Outputs[index].Name, t)
	case Var:
		return fmt.Sprintf("(var %q %v)", p.Vars[index].Name, t)
	}
	return fmt.Sprintf("(%s+%d %v%s)", space, off, t, last)
}
