package launcher

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/env"
	"ebtrain/launch/outlet"
)

// The secret comes from the file, then from the environment; its text is what
// counts, not the line's end.
func TestSecret(t *testing.T) {
	const text = "a secret of sixteen or more"
	file := filepath.Join(t.TempDir(), "key")
	write := func(content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(text+"\n", 0o600)
	fromFile, err := Options{KeyFile: file}.secret([]string{"EBTRAIN_KEY=another secret, also long"})
	fromEnv, err2 := Options{}.secret([]string{"A=b", "EBTRAIN_KEY=" + text})
	if err != nil || err2 != nil || len(fromFile) != 32 || !bytes.Equal(fromFile, fromEnv) {
		t.Errorf("got %x, %v and %x, %v", fromFile, err, fromEnv, err2)
	}
	longer, err := Options{}.secret([]string{"EBTRAIN_KEY=" + text + "."})
	if err != nil || bytes.Equal(longer, fromEnv) {
		t.Errorf("the last character does not count: %v", err)
	}
	if _, err := (Options{}).secret([]string{"EBTRAIN_KEY=fifteen letters"}); err == nil || !strings.Contains(err.Error(), "has 15 characters, want at least 16") {
		t.Errorf("a short secret: %v", err)
	}
	if none, err := (Options{}).secret(nil); none != nil || err != nil {
		t.Errorf("got %x, %v", none, err)
	}
	for mode, want := range map[os.FileMode]string{0o640: "its mode is 0640", 0o604: "its mode is 0604", 0o620: "its mode is 0620"} {
		write(text, mode)
		if _, err := (Options{KeyFile: file}).secret(nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "chmod 600 it") {
			t.Errorf("%o: got %v", mode, err)
		}
	}
	write(text, 0o400)
	if _, err := (Options{KeyFile: file}).secret(nil); err != nil {
		t.Errorf("a file that nobody can write is refused: %v", err)
	}
	for _, content := range []string{"", "short", strings.Repeat("x", maxSecret+1)} {
		write(content, 0o600)
		if _, err := (Options{KeyFile: file}).secret(nil); err == nil || !strings.Contains(err.Error(), "want 16 to 4096") {
			t.Errorf("%d characters: got %v", len(content), err)
		}
	}
}

// A pipe is no file, and nobody waits until somebody writes to it.
func TestSecretPipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := Options{KeyFile: file}.secret(nil)
		got <- err
	}()
	select {
	case err := <-got:
		if err == nil || !strings.Contains(err.Error(), "it is not a file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
}

// A job of one node has a key that nobody can know.
func TestKeyOfOneNode(t *testing.T) {
	keys := map[string]bool{string(make([]byte, 32)): true}
	for range 3 {
		out := outlet.New(io.Discard)
		cfg, err := configure(t.Context(), Options{Nproc: 1, Nodes: 1, RunID: "x"}, nil, out, out)
		out.Close()
		if err != nil {
			t.Fatal(err)
		}
		if k := string(cfg.Node.Key); len(k) != 32 || keys[k] {
			t.Errorf("%x is the key of another job, too, or all zeros, or not of 32 bytes", k)
		} else {
			keys[k] = true
		}
	}
}

// What node 0 puts into the store comes back, whatever is in it, and fits.
func TestCard(t *testing.T) {
	for _, c := range []card{
		{endpoint: "10.9.0.1:29400", key: bytes.Repeat([]byte{0xab}, 32)},
		{endpoint: "[fe80::1%eth0]:7"},
		{failure: "no port is free"},
	} {
		got, err := decodeCard(c.encode())
		if err != nil || got.endpoint != c.endpoint || !bytes.Equal(got.key, c.key) || got.failure != c.failure {
			t.Errorf("%+v became %q and %+v, %v", c, c.encode(), got, err)
		}
	}
	long := card{failure: strings.Repeat("a;\n", 1000)}.encode()
	if len(long) > 1000 || strings.ContainsAny(long, ";\n") {
		t.Errorf("%q cannot be put into the store", long)
	}
	for _, bad := range []string{"", "at", "at ", "at x", "at  ab", "at x yz", "elsewhere x "} {
		if got, err := decodeCard(bad); err == nil {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
}

func TestPlace(t *testing.T) {
	step := env.Step{Source: env.SourceSLURM, ID: "slurm-7.0", Task: 2, Tasks: 4, Node: 2, Nodes: 4, Locals: 1, Host: "n2", Hosts: []string{"n0", "n1", "n2", "n3"}, Head: "n0"}
	for _, c := range []struct{ endpoint, id, wantAt, wantID string }{
		{"", "", "n0", "slurm-7.0"}, {"head:29400", "mine", "head:29400", "mine"},
	} {
		o := Options{Endpoint: c.endpoint, RunID: c.id}
		o.Place(step)
		if o.Endpoint != c.wantAt || o.RunID != c.wantID || o.NodeRank != 2 || o.Step.ID != step.ID || o.Host != "n2" {
			t.Errorf("got %+v", o)
		}
	}
	for _, head := range []string{"n0", ""} {
		step.Nodes, step.Hosts, step.Head = 1, nil, head
		o := Options{}
		if o.Place(step); o.Endpoint != "127.0.0.1" {
			t.Errorf("tasks of one node meet at %s", o.Endpoint)
		}
	}
	alone := Options{}
	if alone.Place(env.Step{Tasks: 1, Nodes: 1}); alone.Gather {
		t.Error("the lines of one launcher are gathered")
	}
	step.Nodes = 0 // nobody tells
	o := Options{}
	if o.Place(step); o.Endpoint != "" || o.Hosts != nil {
		t.Errorf("tasks of unknown nodes %v meet at %s", o.Hosts, o.Endpoint)
	}
}

// Launchers that have no store to meet in are told what to type, in one sentence that
// names all that is missing.
func TestUnmet(t *testing.T) {
	key := []byte("a key")
	for _, c := range []struct {
		source   string
		endpoint string
		rank     int
		key      []byte
		want     string // "" if nothing is missing
	}{
		{"", "", 0, key, ""},
		{"", "node01", 1, key, ""},
		{"", "node01", 1, nil, "several nodes need a common secret: set EBTRAIN_KEY to the same value on all of them, for example the output of openssl rand -hex 32, or name a file that holds it with --key-file"},
		{"", "", 1, key, "nobody says where node 0 is"},
		{env.SourceSLURM, "n0", 0, key, ""},
		{env.SourceSLURM, "n0", 0, nil, "the tasks of this step have no common secret: start them with srun --mpi=pmi2, which brings one along, or set EBTRAIN_KEY to the same value on all of them, for example the output of openssl rand -hex 32"},
		{env.SourceSLURM, "", 0, key, "where a list distributes the tasks (-m arbitrary), Slurm does not say on which host the first one is: start them with srun --mpi=pmi2, or give ddplaunch --rdzv-endpoint HOST"},
		{env.SourceOMPI, "127.0.0.1", 0, key, ""},
		{env.SourceOMPI, "127.0.0.1", 1, nil, "mpirun has given its tasks no common secret: start them with EBTRAIN_KEY=$(openssl rand -hex 32) mpirun -x EBTRAIN_KEY ..."},
		{env.SourceOMPI, "", 0, key, "mpirun has not told its tasks, on several hosts, that of rank 0: start them with mpirun -x MASTER_ADDR=HOST ..., which names it"},
		{env.SourceOMPI, "", 1, nil, "mpirun has given its tasks, on several hosts, no common secret, nor told them that of rank 0: start them with EBTRAIN_KEY=$(openssl rand -hex 32) mpirun -x EBTRAIN_KEY -x MASTER_ADDR=HOST ..., which names it"},
		{env.SourcePMI, "", 1, nil, "mpiexec has given its tasks, on several hosts, no common secret, nor told them that of rank 0: start them with EBTRAIN_KEY=$(openssl rand -hex 32) mpiexec -genv MASTER_ADDR HOST ..., which names it"},
	} {
		o := Options{Step: env.Step{Source: c.source}, Endpoint: c.endpoint, NodeRank: c.rank}
		switch err := o.unmet(c.key); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%+v:\ngot  %v\nwant %s", c, err, c.want)
		}
	}
}

// Only mpirun ends the other tasks by force when one has failed, so there node 0 is first.
func TestLag(t *testing.T) {
	for _, c := range []struct {
		step env.Step
		lags bool
	}{
		{env.Step{}, false},
		{env.Step{Source: env.SourceSLURM, Task: 1}, false},
		{env.Step{Source: env.SourcePMI, Task: 1}, false},
		{env.Step{Source: env.SourceOMPI}, false},
		{env.Step{Source: env.SourceOMPI, Task: 1}, true},
	} {
		if got := lag(c.step); got > 0 != c.lags {
			t.Errorf("%+v waits %v", c.step, got)
		}
	}
}

func TestSpan(t *testing.T) {
	if got := span(2, ":", 4) + " " + span(3, ":", 3); got != "2:4 3" {
		t.Error(got)
	}
}

// Cores are shared by the ranks of a host, but for those that a scheduler has
// already shared.
func TestThreads(t *testing.T) {
	for _, c := range []struct {
		environ              string
		nproc, locals, cores int
		want                 string
	}{
		{"", 1, 0, 8, "8"}, {"", 4, 0, 8, "2"}, {"", 16, 0, 8, "1"}, {"OMP_NUM_THREADS=3", 4, 0, 8, "3"},
		{"SLURM_CPUS_ON_NODE=8", 1, 4, 8, "2"}, {"SLURM_CPUS_ON_NODE=8", 1, 4, 2, "2"}, {"", 1, 4, 2, "1"}, {"SLURM_CPUS_ON_NODE=8", 4, 0, 8, "2"},
	} {
		got := threads(strings.Fields(c.environ), c.nproc, c.locals, c.cores)
		if want := "OMP_NUM_THREADS=" + c.want; got[len(got)-1] != want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

// More ranks than processors are told of where Slurm could give more, and only there.
func TestScarce(t *testing.T) {
	job := []string{"SLURM_JOB_ID=7"}
	for _, c := range []struct {
		ranks, have, all int
		environ          []string
		want             bool
	}{
		{8, 1, 64, job, true}, {8, 7, 8, job, true}, {8, 8, 64, job, false}, {4, 2, 2, job, false}, {8, 1, 64, nil, false},
	} {
		if got := scarce(c.ranks, c.have, c.all, c.environ); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
