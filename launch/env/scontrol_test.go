package env

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestScontrol compares how lists of hosts are read with Slurm's own reading.
func TestScontrol(t *testing.T) {
	if _, err := exec.LookPath("scontrol"); err != nil {
		t.Skip("needs scontrol, of Slurm: install slurm-wlm")
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf") // it wants one, and asks nobody
	text := "ClusterName=none\nSlurmctldHost=localhost\nNodeName=n0\nPartitionName=all Nodes=ALL\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		list := randomList(r)
		cmd := exec.Command("scontrol", "show", "hostnames", list)
		cmd.Env = []string{"SLURM_CONF=" + conf, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("scontrol show hostnames %s: %v: %s", list, err, out)
		}
		got, err := ExpandHosts(list)
		if want := strings.Fields(string(out)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", list, got, err, want)
		}
	}
}

// randomList is a list of hosts in the form that Slurm 22.05 reads: ranges, padding,
// lists, several brackets, but nothing behind the last one.
func randomList(r *rand.Rand) string {
	var names []string
	for range 1 + r.IntN(3) {
		if r.IntN(4) == 0 {
			names = append(names, fmt.Sprint("login", r.IntN(20)))
			continue
		}
		name := ""
		for range 1 + r.IntN(2) {
			var parts []string
			for range 1 + r.IntN(3) {
				first := r.IntN(120)
				part := fmt.Sprintf("%0*d", 1+r.IntN(4), first)
				if r.IntN(2) == 0 {
					part += fmt.Sprintf("-%0*d", len(part), first+r.IntN(12))
				}
				parts = append(parts, part)
			}
			name += []string{"n", "gpu", "rack-", "c1b"}[r.IntN(4)] + "[" + strings.Join(parts, ",") + "]"
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}
