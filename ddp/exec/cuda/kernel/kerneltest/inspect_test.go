package kerneltest

import (
	"strings"
	"testing"

	"ebtrain/collective/cuda"
)

const log = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, 2048 bytes smem
`

// TestFaults: each fault is found, and a translation without has none.
func TestFaults(t *testing.T) {
	const met = "bar.sync 0;\natom.acq_rel.gpu.global.inc.u32 %r1;\nbar.sync 0;"
	for name, c := range map[string]struct{ source, ptx, log, want string }{
		"none":          {"#define FMAF(X) __fmaf(X)\nx = a * b + c;", "mul.f32;\nadd.f32;\ndiv.rn.f32;", log, ""},
		"a warning":     {"", "", log + "k.cu(3): warning #177-D: unused\n", "unused"},
		"no usage":      {"", "", "", "nothing is said of its registers"},
		"registers":     {"", "", strings.Replace(log, "40", "260", 1), "could not be launched"},
		"shared memory": {"", "", strings.Replace(log, "2048", "50000", 1), "50000 bytes of shared memory"},
		"contraction":   {"x = a * b + c;", "fma.rn.f32 %f1;", log, "contracted, to fma.rn.f32"},
		"asked for":     {"x = FMAF(a, b, c);", "fma.rn.f32 %f1;", log, ""},
		"a function's":  {"x = expf(a);", "fma.rn.f32 %f1;\nex2.approx.ftz.f32", log, ""},
		"ftz":           {"x = expf(a);", "mul.ftz.f32 %f1;", log, "mul.ftz.f32"},
		"division":      {"x = expf(a) / b;", "div.full.f32 %f1;", log, "div.full.f32"},
		"reciprocal":    {"x = a / b;", "rcp.approx.ftz.f32 %f1;", log, "rcp.approx.ftz.f32, and calls no function"},
		"meeting":       {"LAST(a, b)", met, log, ""},
		"no order":      {"LAST(a, b)", strings.Replace(met, ".acq_rel", ".relaxed", 1), log, "do not meet behind a count that orders"},
		"read too soon": {"LAST(a, b)", strings.TrimSuffix(met, "bar.sync 0;"), log, "do not meet behind a count that orders"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Text{"k", c.source, 256}.Faults(cuda.Translation{PTX: c.ptx, Log: c.log})
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestScattered(t *testing.T) {
	const source = "DEVICE void load4_float_float(float *r, const float *p) {\n\tconst uint4 v0;\n}\nDEVICE void store2_float_float(float *p, const float *r) {\n\tuint2 v0;\n}\nload4_float_float(x); store2_float_float(y);"
	for ptx, want := range map[string]string{
		"ld.global.v4.f32 {}; st.global.v2.u32 {};":    "",
		"ld.global.nc.v4.u32 {}; st.global.v2.f32 {};": "",
		"ld.global.f32 a; st.global.v2.u32 {};":        "load4_float_float",
		"ld.global.v4.u32 {}; st.global.u32 a;":        "store2_float_float",
	} {
		if got := strings.Join((Text{"k", source, 256}).Scattered(cuda.Translation{PTX: ptx}), " "); got != want {
			t.Errorf("%s: got %q, want %q", ptx, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	for _, c := range []struct{ registers, shared, want int }{{32, 0, 8}, {33, 0, 6}, {64, 36864, 4}, {40, 48 << 10, 4}, {128, 0, 2}, {255, 0, 1}} {
		if got := Blocks(cuda.Usage{Registers: c.registers, Shared: c.shared}, 256); got != c.want {
			t.Errorf("%d registers, %d bytes: %d blocks, want %d", c.registers, c.shared, got, c.want)
		}
	}
}
