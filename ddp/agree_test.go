package ddp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
)

func TestAgree(t *testing.T) {
	long := strings.Repeat("the same line\n", 1000)
	for _, tt := range []struct {
		name  string
		texts []string // by rank
		want  string   // part of the error; "" is none
	}{
		{"alone", []string{"a"}, ""},
		{"two the same", []string{"a\nb", "a\nb"}, ""},
		{"four empty", []string{"", "", "", ""}, ""},
		{"last is odd", []string{"a\nb\nc", "a\nb\nc", "a\nB\nc"}, `line 2: rank 0 has "b", rank 2 has "B"`},
		{"middle is odd", []string{"a", "x", "a"}, `line 1: rank 0 has "a", rank 1 has "x"`},
		{"first is odd", []string{"x", "a", "a"}, `line 1: rank 0 has "x", rank 1 has "a"`},
		{"two different odd ones", []string{"a\nb", "a\nx", "y\nb"}, `line 2: rank 0 has "b", rank 1 has "x"`},
		{"one is longer", []string{"a\nb", "a\nb\nc"}, `line 3: rank 0 has nothing, rank 1 has "c"`},
		{"one is shorter", []string{"a\nb\nc", "a\nb"}, `line 3: rank 0 has "c", rank 1 has nothing`},
		{"one is empty", []string{"a", ""}, `line 1: rank 0 has "a", rank 1 has ""`},
		{"the first is empty", []string{"", "a"}, `line 1: rank 0 has "", rank 1 has "a"`},
		{"only a line break", []string{"a", "a\n"}, `line 2: rank 0 has nothing, rank 1 has ""`},
		{"end of a long text", []string{long + "1", long + "2", long + "1", long + "1"}, `line 1001: rank 0 has "1", rank 1 has "2"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := ddptest.Ranks(len(tt.texts), func(r int, comm collective.Comm) error {
				return Agree(context.Background(), comm, "program", tt.texts[r])
			})
			same(t, errs, tt.want)
		})
	}
}

// same wants the same verdict of every rank: none, or an ErrDisagree with want.
func same(t *testing.T, errs []error, want string) {
	t.Helper()
	for r, err := range errs {
		switch {
		case want == "" && err != nil:
			t.Errorf("rank %d: %v", r, err)
		case want == "":
		case err == nil || !errors.Is(err, ErrDisagree) || !strings.Contains(err.Error(), want):
			t.Errorf("rank %d: got %v, want %s", r, err, want)
		case err.Error() != errs[0].Error():
			t.Errorf("rank %d: %v; rank 0: %v", r, err, errs[0])
		}
	}
}

// No text is taken for another, whichever they are: what is compared is all of their hashes,
// and not so little of them that some have it in common.
func TestAgreeTellsTextsApart(t *testing.T) {
	errs := ddptest.Ranks(2, func(r int, comm collective.Comm) error {
		for i := range 1000 {
			text := fmt.Sprintf("step %d", i*(1+r))
			if err := Agree(context.Background(), comm, "program", text); (err == nil) != (i == 0) {
				return fmt.Errorf("rank %d has %q, and it says: %w", r, text, cmp.Or(err, errors.New("nothing")))
			}
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// A rank that is gone ends the comparison.
func TestAgreeWithoutARank(t *testing.T) {
	gone := errors.New("gone")
	errs := ddptest.Ranks(3, func(r int, comm collective.Comm) error {
		if r == 1 {
			return gone
		}
		return Agree(context.Background(), comm, "program", "a")
	})
	for _, r := range []int{0, 2} {
		if !errors.Is(errs[r], gone) || errors.Is(errs[r], ErrDisagree) {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
}

func TestReplicas(t *testing.T) {
	type set map[string][]float64
	good := set{"net.a": {1, 2}, "net.b": {3}}
	names := []string{"net.a", "net.b"}
	for _, tt := range []struct {
		name string
		sets []set
		want string
	}{
		{"alone", []set{good}, ""},
		{"equal", []set{good, good, good}, ""},
		{"one differs", []set{good, {"net.a": {1, 2}, "net.b": {4}}}, `line 2: rank 0 has "net.b `},
		{"last bit", []set{good, good, {"net.a": {1, 2.0000000000000004}, "net.b": {3}}}, `line 1: rank 0 has "net.a `},
		{"sign of zero", []set{{"net.a": {0, 0}, "net.b": {1}}, {"net.a": {0, math.Copysign(0, -1)}, "net.b": {1}}}, `rank 0 has "net.a `},
		{"another shape", []set{good, {"net.a": {1, 2, 3}, "net.b": {3}}}, `rank 0 has "net.a `},
		{"one lacks a variable", []set{good, {"net.a": {1, 2}}, good}, `rank 1 has "net.b: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := ddptest.Ranks(len(tt.sets), func(r int, comm collective.Comm) error {
				vars := ddptest.NewVars()
				for name, v := range tt.sets[r] {
					if err := vars.Set(name, ddptest.Tensor(graph.T(graph.F64, len(v)), v)); err != nil {
						return err
					}
				}
				return NewReplicas(comm, vars, names).Compare(context.Background())
			})
			same(t, errs, tt.want)
		})
	}
}

// Each comparison is of what there is then: replicas that differ and are put right agree
// again, and a second difference is on its own line.
func TestReplicasAgain(t *testing.T) {
	for r, err := range ddptest.Ranks(2, func(r int, comm collective.Comm) error {
		vars := ddptest.NewVars()
		replicas := NewReplicas(comm, vars, []string{"a", "b"})
		for i, tt := range []struct{ a, b, want string }{
			{"same", "same", ""},
			{"same", "other", "line 2: rank 0 has \"b "},
			{"same", "same", ""},
			{"other", "same", "line 1: rank 0 has \"a "},
		} {
			for name, is := range map[string]string{"a": tt.a, "b": tt.b} {
				v := 1.0
				if is == "other" {
					v += float64(r)
				}
				if err := vars.Set(name, ddptest.Tensor(graph.T(graph.F64, 1), []float64{v})); err != nil {
					return err
				}
			}
			err := replicas.Compare(context.Background())
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				return fmt.Errorf("comparison %d, which must say %q, says: %w", i, tt.want, cmp.Or(err, errors.New("nothing")))
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// What no rank has is no agreement.
func TestReplicasOfNothing(t *testing.T) {
	for _, size := range []int{1, 2} {
		for r, err := range ddptest.Ranks(size, func(_ int, comm collective.Comm) error {
			return NewReplicas(comm, ddptest.NewVars(), []string{"net.a"}).Compare(context.Background())
		}) {
			if err == nil || !strings.Contains(err.Error(), "net.a") {
				t.Errorf("%d ranks, rank %d: %v", size, r, err)
			}
		}
	}
}
