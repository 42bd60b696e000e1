package cuda

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// polls are asked as often as time takes: their calls have no numbers.
var polls = []string{"cuStreamQuery", "cuEventQuery", "ncclCommGetAsyncError"}

// leaves are functions of NCCL's that leave what they are to free where they fail.
var leaves = []string{"ncclCommDestroy", "ncclCommAbort", "ncclMemFree", "ncclCommDeregister"}

// functions are those of the driver's and of NCCL's that are bound.
func functions(t *testing.T) []string {
	t.Helper()
	names := []string{"cuDriverGetVersion"} // which is found apart
	for _, file := range []string{"cuda/abi/driver.h", "cuda/abi/nvrtc.h", "nccl/abi.h"} {
		text, err := os.ReadFile("../../../collective/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\b(cu|nvrtc|nccl)[A-Z]\w+`).FindAllString(string(text), -1) {
			if !slices.Contains(names, m) {
				names = append(names, m)
			}
		}
	}
	return names
}

// callsOf are how often each function was called on the machine.
func callsOf(t *testing.T, m *cudatest.Machine) map[string]int {
	calls := map[string]int{}
	for _, f := range functions(t) {
		if n := m.Calls(f); n > 0 && f != "cuCtxSetCurrent" {
			calls[f] = n
		}
	}
	return calls
}

// TestEachCallFails makes each call of the driver's, from the opening of the device to its
// closing, fail once: that is an error, a sentence, no hang, and nothing is left; or it is
// done without, with the results of a run that nothing disturbs.
func TestEachCallFails(t *testing.T) {
	for _, c := range []Config{{Graphs: GraphsOn}, {Graphs: GraphsOn, Body: true}, {Graphs: GraphsOff}} {
		t.Run(fmt.Sprintf("graphs %v, body %v", c.Graphs, c.Body), func(t *testing.T) {
			c.Plain, c.Lanes = true, 2
			eachCallFails(t, c)
		})
	}
}

func eachCallFails(t *testing.T, c Config) {
	g := scene()
	cudatest.Use(t)
	want, err := play(g, c, 3) // what is loaded and compiled once, is
	if err != nil {
		t.Fatal(err)
	}
	m := cudatest.Use(t)
	if _, err := play(g, c, 3); err != nil {
		t.Fatal(err)
	}
	calls, all := callsOf(t, m), m.Calls("*")
	var failed, without []string
	for f, most := range calls {
		all -= most
		step := 1
		if slices.Contains(polls, f) {
			most = 1
		} else if testing.Short() { // the first and the last: under the race detector each takes long
			step = max(1, most-1)
		}
		for n := 1; n <= most; n += step {
			m := cudatest.Use(t)
			m.Fail(f, n, 999)
			got, err := play(g, c, 3)
			m.Clean()
			e, ok := errors.AsType[*driver.Error](err)
			switch {
			case err == nil && !slices.Equal(got, want) || len(got) > len(want) || !slices.Equal(got, want[:len(got)]):
				t.Errorf("call %d of %s failed: other results, and the error is %v", n, f, err)
			case err == nil:
				without = append(without, f)
			case !ok || strings.Contains(err.Error(), "\n"):
				t.Errorf("call %d of %s failed, and the error is %v", n, f, err)
			default:
				failed = append(failed, e.Call)
			}
		}
	}
	slices.Sort(failed)
	slices.Sort(without)
	t.Logf("errors of %v; done without %v", slices.Compact(failed), slices.Compact(without))
	if all != 0 {
		t.Errorf("%d calls are of functions that no header of ours declares", all)
	}
}

// TestEachCallOfRanksFails makes calls that two ranks make in their runs and after them fail,
// over NCCL and staged: nothing hangs and nothing is left, and who has no error has the
// results of runs that nothing disturbs; so has who has one, up to it.
func TestEachCallOfRanksFails(t *testing.T) {
	const runs = firstMeasured + 2
	for _, c := range []Config{{}, {Transport: TransportStaged}} {
		t.Run([]string{"captured by NCCL", 2: "staged"}[c.Transport], func(t *testing.T) {
			m := cudatest.Use(t)
			var before map[string]int
			want := runRanks(t, alike(c), runs, onceCompiled(func() { before = callsOf(t, m) }))
			if err := errors.Join(want.errs[:]...); err != nil {
				t.Fatal(err)
			}
			ended := 0
			for f, n := range callsOf(t, m) {
				for _, k := range spread(f, n-before[f]) {
					fault := fmt.Sprintf("%s=%d=999", f, k)
					got := runRanks(t, alike(c), runs, onceCompiled(func() { m.Set("FAULT", fault) }))
					if got.errs != [2]error{} {
						ended++
					}
					got.upToError(t, fault, want)
					if t.Failed() { // the others would find what is left
						return
					}
				}
			}
			if ended < 10 {
				t.Errorf("%d faults ended runs", ended)
			}
		})
	}
}

// onceCompiled calls f once, when both ranks have compiled and none has run anything.
func onceCompiled(f func()) func(rank, run int, p *program) error {
	var both sync.WaitGroup
	both.Add(2)
	once := sync.OnceFunc(f)
	return func(_, run int, _ *program) error {
		if run == 0 {
			both.Done()
			both.Wait()
			once()
		}
		return nil
	}
}

// spread are some of n calls of a function.
func spread(f string, n int) []int {
	switch {
	case n == 0 || slices.Contains(leaves, f):
		return nil
	case n == 1 || slices.Contains(polls, f):
		return []int{1}
	case testing.Short():
		return []int{(n + 1) / 2}
	}
	return slices.Compact([]int{1, (n + 1) / 2})
}

// upToError demands want's results of the runs that went well.
func (o *ranksRun) upToError(t *testing.T, fault string, want *ranksRun) {
	t.Helper()
	for r, got := range o.bits {
		if all := want.bits[r]; o.errs[r] == nil && len(got) != len(all) || !slices.Equal(got, all[:len(got)]) {
			t.Errorf("%s: rank %d has other results, and the error %v", fault, r, o.errs[r])
		}
	}
}
