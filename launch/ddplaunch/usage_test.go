package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Every mistake gets one sentence that names it, a pointer to the help, and
// exit code 2.
func TestUsage(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Chmod(file, 0o644)); err != nil { // whatever the umask
		t.Fatal(err)
	}
	short := t.TempDir() + "/short"
	if err := os.WriteFile(short, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := t.TempDir() + "/nowhere"
	if err := os.Symlink("none", nowhere); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ args, want string }{
		{"", "no program to start"},
		{"-nproc 2", "no program to start"},
		{"-nproc", "--nproc-per-node needs a value"},
		{"-nproc 0 true", `--nproc-per-node "0": want a number from 1 to 1024`},
		{"-nproc two true", `--nproc-per-node "two"`},
		{"-nproc -1 true", `--nproc-per-node "-1"`},
		{"-nproc 99999 true", `--nproc-per-node "99999"`},
		{"-nproc gpu true", "this node shows no GPU"},
		{"--nprocs 2 true", "unknown flag --nprocs"},
		{"-z true", "unknown flag -z"},
		{"--nnodes 0 true", `--nnodes "0"`},
		{"--nnodes x true", `--nnodes "x"`},
		{"--nnodes 4:1 true", "want a number of nodes, at least 1, or a least and a largest number, as in 2:4"},
		{"--nnodes 1:4 true", "give --node-rank 0 on one node, and --join HOST on the others"},
		{"--nnodes 2 true", "give --node-rank 0 on one node"},
		{"--nnodes 2 --node-rank 2 true", "--node-rank 2 is not below --nnodes 2"},
		{"--nnodes 2 --node-rank -1 true", `--node-rank "-1"`},
		{"--nnodes 2 --node-rank 1 true", "needs the address of node 0"},
		{"--nnodes 2 --node-rank 0 --join a:1 true", "--node-rank 0 is the node that others join"},
		{"--nnodes 2 --join a:1 --rdzv-endpoint a:1 true", "give one of them"},
		{"--nnodes 2 --join a true", "several nodes need a common secret"},
		{"--nnodes 2 --join [::1] true", "several nodes need a common secret"},
		{"--nnodes 2 --join ::1 true", `address "::1": one of IPv6 stands in brackets: want [ADDRESS]:PORT or [ADDRESS], for example [fd00::1]:29400 or [fd00::1]`},
		{"--nnodes 2 --join [fe80::1] true", `address "[fe80::1]" is of one link: name this node's interface to it, as in [fe80::1%eth0]`},
		{"--nnodes 2 --join [fe80::1]:29400 true", `address "[fe80::1]:29400" is of one link`},
		{"--nnodes 2 --join [fe80::1%eth0] true", "several nodes need a common secret"},
		{"--nnodes 2 --join a:b:c true", `address "a:b:c": want HOST:PORT or HOST`},
		{"--nnodes 2 --node-rank 1 true", "--node-rank 1 needs the address of node 0: --join HOST"},
		{"--key abcdefghijklmnopqrstuvwxyz true", "--key: whoever may list this machine's processes would read the secret"},
		{"--nnodes 2 --node-rank 0 --key-file /nowhere/key true", "--key-file /nowhere/key: no such file or directory"},
		{"--nnodes 2 --node-rank 0 --key-file /tmp true", "--key-file /tmp: it is not a file"},
		{"--nnodes 2 --node-rank 0 --key-file " + file + " true", "--key-file " + file + ": others may use it (its mode is 0644): chmod 600 it"},
		{"--nnodes 2 --node-rank 0 --key-file " + short + " true", "--key-file " + short + ": it holds 5 characters, want 16 to 4096"},
		{"--port-range 5:4 true", `--port-range "5:4": want the first and the last port`},
		{"--port-range a true", `--port-range "a"`},
		{"--port-range 0:7 true", `--port-range "0:7"`},
		{"--nnodes 2 --node-rank 0 --port-range 29400 true", `--port-range 29400: with several nodes ddplaunch listens on one port of each`},
		{"--nnodes 2 --node-rank 0 --rdzv-id " + strings.Repeat("é", 124) + " true", "--rdzv-id has 248 bytes, want at most 247"},
		{"--network nosuch0 true", `--network "nosuch0" is no interface of this machine that is up`},
		{"--stop-before soon true", `--stop-before "soon": want a time above zero, for example 10s or 2m, or 0 for never`},
		{"--stuck-after abc true", `--stuck-after "abc": want a time above zero, for example 10s or 2m, or 0 for never`},
		{"--nnodes 2 --join a:0 true", `address "a:0": want HOST:PORT`},
		{"--nnodes 2 --join a:b true", `address "a:b": want HOST:PORT`},
		{"--nnodes 2 --node-rank 0 --rdzv-endpoint ::1:80 true", "want [ADDRESS]:PORT"},
		{"--nnodes 2 --node-rank 0 true", "set EBTRAIN_KEY to the same value"},
		{"--nnodes 2 --standalone --node-rank 0 true", "--standalone means one node"},
		{"--nnodes 2 --standalone true", "--standalone means one node, --nnodes says 2: leave one of them out"},
		{"--join a:1 true", "makes no sense with one node"},
		{"--node-rank 1 true", "--node-rank 1 is not below --nnodes 1"},
		{"--max-restarts -1 true", "--max-restarts -1"},
		{"--max-restarts many true", `--max-restarts "many": want a whole number`},
		{"--grace soon true", `--grace "soon"`},
		{"--grace 0 true", `--grace "0"`},
		{"--rdzv-timeout -3s true", `--rdzv-timeout "-3s"`},
		{"-r 3 true", "need --log-dir"},
		{"-r 9 --log-dir d true", "--redirects \"9\""},
		{"-t 0:x --log-dir d true", "--tee \"x\""},
		{"--log-dir " + file + " true", "--log-dir " + file + ": that is a file, want a folder: give another"},
		{"--log-dir " + nowhere + "/a true", "--log-dir " + nowhere + "/a: " + nowhere + " is a link to what is not there: give another"},
		{"--log-dir " + file + "/a/b true", "--log-dir " + file + "/a/b: " + file + " is a file, want a folder: give another"},
		{"--log-dir /proc/a true", "--log-dir /proc/a: the folder cannot be made: no such file or directory: give another"},
		{"-nproc 2 --local-ranks-filter 2 true", "want local ranks from 0 to 1"},
		{"--signals-to-handle SIGFOO true", `"SIGFOO" is not a signal`},
		{"--signals-to-handle SIGKILL true", `"SIGKILL" is not a signal that can be handled`},
		{"-np 2 true", "unknown flag -np: did you mean -nproc?"},
		{"--nprocs 2 true", "unknown flag --nprocs: did you mean -nproc?"},
		{"-nrpoc 2 true", "unknown flag -nrpoc: did you mean -nproc?"},
		{"no-such-program-anywhere", `program "no-such-program-anywhere" is neither in`},
		{"./no/such/program", "program ./no/such/program does not exist"},
		{"/tmp", "program /tmp is a folder"},
		{file, "is not executable"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			j := start(t, []string{"CUDA_VISIBLE_DEVICES="}, strings.Fields(tt.args)...)
			code, out := j.end()
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			want(t, out, tt.want)
			if !strings.HasPrefix(out, "ddplaunch: ") || !strings.HasSuffix(out, " (see ddplaunch --help)\n") || strings.Count(out, "\n") != 1 {
				t.Errorf("want one sentence and a pointer to the help, got\n%s", out)
			}
		})
	}
}

// The rank's side: environments that do not fit end with one sentence.
func TestBadEnvironment(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const ours = " RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=0 EBTRAIN_EPOCH=0 EBTRAIN_GROUP=g"
	tests := []struct{ name, environ, want string }{
		{"mpirun", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2",
			"no launcher: started by mpirun (Open MPI) as rank 1 of 2, but ranks meet through ddplaunch only: run ddplaunch -nproc 2"},
		{"torchrun", "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4", "no launcher: started by torchrun as rank 0 of 4"},
		{"half", "RANK=0", "WORLD_SIZE is not set"},
		{"control channel is not open", "EBTRAIN_CONTROL_FD=77 EBTRAIN_PROGRESS_FD=78" + ours, "EBTRAIN_CONTROL_FD=77 is not the socket of a launcher"},
		{"control channel is a file", "EBTRAIN_CONTROL_FD=3 EBTRAIN_PROGRESS_FD=78" + ours, "EBTRAIN_CONTROL_FD=3 is not the socket of a launcher (not a socket)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			null, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := null.Close(); err != nil {
					t.Error(err)
				}
			}()
			cmd := exec.Command(self, "gather")
			cmd.Env = append(strings.Fields(tt.environ), roleVar+"=rank")
			cmd.ExtraFiles = []*os.File{null}
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 2 || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%v, output\n%s", err, out)
			}
			want(t, string(out), tt.want)
		})
	}
}

// The signals that are handled are those that --signals-to-handle names, and no others.
func TestSignals(t *testing.T) {
	for args, want := range map[string][]os.Signal{
		"true":                             {unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1},
		"--signals-to-handle SIGTERM true": {unix.SIGTERM},
		"--signals-to-handle usr1,SIGINT,winch true": {unix.SIGUSR1, unix.SIGINT, unix.SIGWINCH},
	} {
		o, err := parse(strings.Fields(args), os.Environ(), io.Discard)
		if err != nil || !slices.Equal(o.Signals, want) {
			t.Errorf("ddplaunch %s: %v, %v; want %v", args, o.Signals, err, want)
		}
	}
}

// Without a launcher a program is a world of one, and needs nothing.
func TestAlone(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "gather")
	cmd.Env = []string{roleVar + "=rank"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Error(err)
	}
	want(t, string(out), "first: [first-of-0]\n", "sizes 1 0 1000, hosts 1, one host true, local 0 of 1\n", "job alone-", "(32)\n")
}

func TestHelp(t *testing.T) {
	for _, flag := range []string{"--help", "-h", "-help"} {
		code, out := run1(t, flag)
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		want(t, out, "ddplaunch -nproc 2 train ", "--nproc-per-node", "--redirects", "EBTRAIN_KEY")
	}
}

// -nproc N, as everyone types it, in all its spellings.
func TestSpellings(t *testing.T) {
	for _, args := range []string{"-nproc 2", "--nproc 2", "-nproc=2", "--nproc_per_node 2", "-nproc-per-node=2"} {
		code, out := run1(t, append(strings.Fields(args), "sh", "-c", "echo $WORLD_SIZE")...)
		if code != 0 {
			t.Errorf("%s: exit code %d", args, code)
		}
		each(t, out, []int{0, 1}, "2")
	}
}
