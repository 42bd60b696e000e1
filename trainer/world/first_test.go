package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// roleVar makes this test's program a rank of a launcher that a test has started.
const roleVar = "WORLD_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) == "" {
		os.Exit(m.Run())
	}
	if err := parts(context.Background()); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// parts is a rank of four: groups of the first two, of the first three over the network,
// and of the last two live beside each other and the world's own, and each sums what its
// members bring.
func parts(ctx context.Context) (err error) {
	w, err := Join(ctx, os.Environ())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Connect(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return w.Fail(err)
	}
	type group struct {
		from, n, hosts int
		comm           collective.Comm
	}
	groups := []group{{0, 4, 1, w.Comm}}
	for _, g := range []group{{from: 0, n: 2, hosts: 1}, {from: 0, n: 3, hosts: 3}, {from: 2, n: 2, hosts: 1}} {
		connect := w.First
		if g.from > 0 {
			connect = func(ctx context.Context, n int, name string, apart bool) (*host.Comm, error) {
				return w.Part(ctx, g.from, n, name, apart)
			}
		}
		c, err := connect(ctx, g.n, fmt.Sprint(g), g.hosts > 1)
		if err != nil {
			return w.Fail(err)
		}
		in := w.Rank() >= g.from && w.Rank() < g.from+g.n
		switch {
		case in != (c != nil):
			return w.Fail(fmt.Errorf("rank %d has a group of %d from %d: %v", w.Rank(), g.n, g.from, c != nil))
		case !in:
			continue
		}
		hosts := map[int]bool{}
		for _, h := range c.Hosts() {
			hosts[h] = true
		}
		if c.Rank() != w.Rank()-g.from || c.Size() != g.n || len(hosts) != g.hosts {
			return w.Fail(fmt.Errorf("rank %d is %d of %d on %d hosts", w.Rank(), c.Rank(), c.Size(), len(hosts)))
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		g.comm = c
		groups = append(groups, g)
	}
	for round := range 3 {
		for _, g := range groups {
			v := []int64{int64(w.Rank() + round)}
			if err := collective.Do(ctx, g.comm, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(v)}); err != nil {
				return w.Fail(err)
			}
			want := int64(g.n*(g.n-1)/2 + g.n*(g.from+round))
			if v[0] != want {
				return w.Fail(fmt.Errorf("ranks %d to %d sum to %d, want %d", g.from, g.from+g.n-1, v[0], want))
			}
		}
	}
	fmt.Printf("rank %d is in %d groups\n", w.Rank(), len(groups))
	return nil
}

// TestParts starts four ranks under a launcher.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "ebtrain/launch/ddplaunch").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	const patience = time.Minute // more is a hang
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "ddplaunch"), "-nproc", "4", os.Args[0])
	cmd.Env, cmd.WaitDelay = append(os.Environ(), roleVar+"=rank"), 5*time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v, %v\n%s", err, ctx.Err(), out)
	}
	for rank, groups := range []int{3, 3, 3, 2} {
		if line := fmt.Sprintf("rank %d is in %d groups", rank, groups); strings.Count(string(out), line) != 1 {
			t.Errorf("not once %q in\n%s", line, out)
		}
	}
}
