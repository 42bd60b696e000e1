package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ebtrain/collective/cost"
	"ebtrain/launch/netns"
)

// stand puts a program of the peers' into dir: it demands its arguments, a pattern of
// the shell's, and says what it is told to.
func stand(t *testing.T, dir, name, args, says string) {
	t.Helper()
	text := "#!/bin/sh\ncase \"$*\" in ''" + strings.ReplaceAll(args, " ", `\ `) + ") ;; *) echo \"" + name + " was given $*\" >&2; exit 3;; esac\necho '" + says + "'\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestPeers compares with programs that say what they are told to: a row for each
// size, and an error for what cannot be believed.
func TestPeers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	root := ""
	if os.Geteuid() == 0 {
		root = " --allow-run-as-root"
	}
	mpirun := "--oversubscribe -np 2" + root + " --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo " + dir + "/mpi 4096 50 0.02"
	good := `{"bytes":4096,"best_us":1000000,"median_us":3000000,"reps":5,"wrong":0}`
	stand(t, dir, "mpi", "", "")
	stand(t, dir, "mpirun", mpirun, good)
	stand(t, dir, "gloo", "2 4096 50 0.02 /*/collbench-gloo-* lo", `{"bytes":4096,"best_us":2000000,"median_us":6000000,"reps":5,"wrong":0}`)
	args := strings.Fields("collbench --peers " + dir + " --network tcp --sizes 4K --rounds 2 --iters 50 --max-time 20ms")
	code, out, errs := start(t, dir, args...)
	row := `\n\| 4096 \| [\d.]+ · [\d.]+ \| [\d.]+ · [\d.]+ \| 1000000 · 3000000 \| 2000000 · 6000000 \| [\d.]+ \| [\d.]+ \| [\d.]+ \|  \|  \| [\d.]+ \| -?[\d.]+ \|\n$`
	if code != 0 || errs != "" || !regexp.MustCompile(row).MatchString(out) {
		t.Errorf("exit %d, want a row like %s, printed\n%s%s", code, row, out, errs)
	}
	stand(t, dir, "gloo", "2 4096 50 0.02 /*/collbench-gloo-* lo", strings.Replace(good, `"wrong":0`, `"wrong":7`, 1))
	if code, out, errs := start(t, dir, args...); code != 1 || !strings.Contains(errs, "gloo, 4096 bytes: ") || !strings.Contains(errs, "wrong elements") {
		t.Errorf("wrong elements: exit %d\n%s%s", code, out, errs)
	}
	stand(t, dir, "mpirun", "", good)
	if code, out, errs := start(t, dir, args...); code != 1 || !strings.Contains(errs, "OpenMPI, 4096 bytes: mpirun: exit status 3; it said") {
		t.Errorf("a peer that fails: exit %d\n%s%s", code, out, errs)
	}
}

// TestRow has rounds whose medians are known.
func TestRow(t *testing.T) {
	of := func(times ...float64) (runs []cost.Size) {
		for _, m := range times {
			runs = append(runs, cost.Size{Times: cost.Times{Best: m / 2, Median: m}, FloorShare: 1 / m, LeastShare: 2 / m})
		}
		return runs
	}
	c := comparison{bytes: 8, runs: [][]cost.Size{of(4, 2, 10), of(8, 8, 16), of(40, 20, 12), of(400, 800)}, others: 0.25}
	want := "| 8 | 1.0 · 4.0 | 4.0 · 8.0 | 6.0 · 20.0 | 200 · 600 | 5.00 | 2.50 | 150.00 | 0.25 | 0.50 |  | 0.2 |\n"
	if got := c.row(); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// TestApart has ranks of ours and of a stand-in for gloo on hosts made of namespaces:
// each is told the link it has there and its rank.
func TestApart(t *testing.T) {
	if err := netns.Possible(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	good := `{"bytes":4096,"best_us":1000000,"median_us":3000000,"reps":5,"wrong":0}`
	stand(t, dir, "mpi", "", "")
	// Of MPI, the host of the second rank is entered as it would be.
	text := "#!/bin/sh\n[ `hostname` = node0 ] || exit 4\nwhile [ $1 != plm_rsh_agent ]; do shift; done\n" +
		"case `$2 10.7.0.2 hostname \\; pwd` in 'node1\n/') echo '" + good + "';; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "mpirun"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	text = "#!/bin/sh\n[ `hostname` = node$7 ] && [ $6 = eth0 ] && ip -o addr show dev $6 | grep -q 10.7.0.$(($7 + 1)) && echo '" + good + "'\n"
	if err := os.WriteFile(filepath.Join(dir, "gloo"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	code, out, errs := start(t, dir, strings.Fields("collbench --peers . --network namespaces --sizes 4K --rounds 1 --iters 50 --max-time 20ms")...)
	if code != 0 || errs != "" || strings.Count(out, "1000000 · 3000000") != 2 || !strings.Contains(out, "made of namespaces") {
		t.Errorf("exit %d, printed\n%s%s", code, out, errs)
	}
}
