package kernel

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
)

// expression is an instruction in C: a function of x, y, z, which are registers of
// type reg; a is the parameter of a unary function.
func expression(op graph.Op, reg, x, y, z, a string) string {
	switch op := op.(type) {
	case graph.Unary:
		return unaryText(op.Fn, reg, x, a)
	case graph.Binary:
		return binaryText(op.Fn, reg, x, y)
	}
	return fmt.Sprintf("%s != 0 ? %s : %s", x, y, z)
}

// suffix is f for the functions of float.
func suffix(reg string) string {
	if reg == "float" {
		return "f"
	}
	return ""
}

// letter ends the names of the dialect's functions of type reg.
func letter(reg string) string {
	return map[string]string{"float": "F", "double": "D", "i64": "L"}[reg]
}

// unaryText is fn(x), as graph.UnaryFn says. Exponentials are of numbers that are not
// positive where that is possible, so nothing overflows.
func unaryText(fn graph.UnaryFn, reg, x, a string) string {
	f := suffix(reg)
	e := fmt.Sprintf("exp%s(-fabs%[1]s(%s))", f, x)
	switch fn {
	case graph.Neg:
		return "-" + x
	case graph.Abs:
		return fmt.Sprintf("fabs%s(%s)", f, x)
	case graph.Sign:
		return fmt.Sprintf("%s > 0 ? 1 : %[1]s < 0 ? -1 : %[1]s", x)
	case graph.Step:
		return x + " > 0 ? 1 : 0"
	case graph.Relu:
		return fmt.Sprintf("%s > 0 || %[1]s != %[1]s ? %[1]s : 0", x)
	case graph.LeakyRelu:
		return fmt.Sprintf("%s > 0 ? %[1]s : %s * %[1]s", x, a)
	case graph.LeakyStep:
		return fmt.Sprintf("%s > 0 ? 1 : %s", x, a)
	case graph.Elu:
		return fmt.Sprintf("%s > 0 ? %[1]s : %s * expm1%s(%[1]s)", x, a, f)
	case graph.EluD:
		return fmt.Sprintf("%s > 0 ? 1 : %s * exp%s(%[1]s)", x, a, f)
	case graph.EluDD:
		return fmt.Sprintf("%s > 0 ? 0 : %s * exp%s(%[1]s)", x, a, f)
	case graph.Softplus:
		return fmt.Sprintf("(%s > 0 || %[1]s != %[1]s ? %[1]s : 0) + log1p%s(%s)", x, f, e)
	case graph.Sigmoid:
		return fmt.Sprintf("(%s >= 0 ? 1 : %s) / (1 + %[2]s)", x, e)
	case graph.Square:
		return x + " * " + x
	case graph.Recip:
		return "1 / " + x
	case graph.PowC:
		return fmt.Sprintf("pow%s(%s, %s)", f, x, a)
	case graph.Scale:
		return a + " * " + x
	case graph.Shift:
		return x + " + " + a
	}
	return fmt.Sprintf("%s%s(%s)", fn, f, x) // tanh exp log sqrt sin cos erf
}

func binaryText(fn graph.BinaryFn, reg, x, y string) string {
	sign, ok := map[graph.BinaryFn]string{graph.Add: "+", graph.Sub: "-", graph.Mul: "*", graph.Div: "/"}[fn]
	switch {
	case ok && reg == "i64": // unsigned numbers wrap around
		return fmt.Sprintf("(i64)((u64)%s %s (u64)%s)", x, sign, y)
	case ok:
		return x + " " + sign + " " + y
	case fn == graph.Max:
		return fmt.Sprintf("max%s(%s, %s)", letter(reg), x, y)
	case fn == graph.Min:
		return fmt.Sprintf("min%s(%s, %s)", letter(reg), x, y)
	case fn == graph.Greater:
		return fmt.Sprintf("%s > %s ? 1 : 0", x, y)
	}
	return fmt.Sprintf("%s == %s ? 1 : 0", x, y)
}

// rounded is a register after it was computed, as a number of type d.
func rounded(d graph.DType, x string) string {
	switch d {
	case graph.BF16:
		return "fromBF16(toBF16(" + x + "))"
	case graph.I32, graph.U8:
		return "(i64)(" + ctype(d) + ")(" + x + ")"
	}
	return x
}

// constant is v as a number of type d; integers are the nearest, wrapped around.
func constant(d graph.DType, v float64) float64 {
	switch d {
	case graph.BF16:
		return bf16(v)
	case graph.I32:
		return float64(int32(int64(math.RoundToEven(v))))
	case graph.U8:
		return float64(uint8(int64(math.RoundToEven(v))))
	case graph.I64:
		return math.RoundToEven(v)
	}
	return v
}
