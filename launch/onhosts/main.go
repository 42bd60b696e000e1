// Command onhosts runs a program on hosts that it makes of this machine, on all at
// once:
//
//	onhosts --hosts 4 --gbit 1 ddplaunch --nnodes 4 --node-rank {host} \
//	    --rdzv-endpoint {host0}:29400 -nproc 1 bench --width 8 --batch 32 --check
//
// Hosts are namespaces, see package netns; root is needed for them. What is started is
// ended when onhosts is, and looked for after that.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/netns"
	"ebtrain/launch/variable"
)

func main() {
	ctx, end := cliflag.UntilSignal(context.Background(), "the program was ended on all hosts")
	err := end(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	os.Exit(cliflag.Exit("onhosts", err, os.Stderr))
}

// program is what --help shows of onhosts besides the flags themselves.
var program = cliflag.Program{
	Name: "onhosts",
	Args: "PROGRAM [ITS FLAGS]",
	About: `onhosts makes hosts of this machine and runs a program on all of them at once,
to try and to measure what several hosts do. It needs root.

  onhosts --hosts 4 --gbit 1 ddplaunch --nnodes 4 --node-rank {host} \
      --rdzv-endpoint {host0}:29400 -nproc 1 bench --width 8 --batch 32 --check

A host has a network, a /dev/shm and a name of its own; files and processors are
shared. In the program's arguments {host} is the number of the host, {hosts} how
many there are, and {host0} the address of the first. EBTRAIN_KEY is a new one
where there is none. The exit code is 1 if the program failed anywhere.
`,
	Stops: true,
	Groups: []cliflag.Group{
		{Title: "Hosts", Flags: []string{"hosts", "gbit"}},
		{Title: "Help", Flags: []string{"help", "version"}},
	},
}

type options struct {
	hosts   int
	gbit    float64
	command []string
}

func parse(args []string, stdout io.Writer) (o options, err error) {
	fs := pflag.NewFlagSet("onhosts", pflag.ContinueOnError)
	fs.IntVar(&o.hosts, "hosts", 2, "how many hosts")
	fs.Float64Var(&o.gbit, "gbit", 0, "limit each host's link to so many Gbit/s in each direction; 0 is no limit")
	if err := program.Parse(fs, args, stdout); err != nil {
		return o, err
	}
	o.command = fs.Args()
	switch {
	case o.hosts < 1 || o.hosts > netns.Most:
		return o, cliflag.Usage("--hosts %d: want 1 to %d", o.hosts, netns.Most)
	case !(o.gbit >= 0):
		return o, cliflag.Usage("--gbit %v: want more than 0, or 0 for no limit", o.gbit)
	case len(o.command) == 0:
		return o, cliflag.Usage("nothing to run: give a program after the flags, as in onhosts --hosts 2 hostname")
	}
	return o, nil
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if name := o.command[0]; !strings.Contains(name, "{") { // else it is another on each host
		if _, err := exec.LookPath(name); err != nil {
			return cliflag.Usage("program %q cannot be run: %w: give its path, or one on PATH", name, errors.Unwrap(err))
		}
	}
	net, err := netns.New(o.hosts, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	if o.gbit > 0 {
		if err := net.Limit(o.gbit); err != nil {
			return err
		}
	}
	if variable.Get(environ, keyVar) == "" {
		environ = append(environ, keyVar+"="+rand.Text())
	}
	runtime.LockOSThread() // Pdeathsig means the death of the thread that starts them
	defer runtime.UnlockOSThread()
	var cmds []*exec.Cmd
	for i, h := range net.Hosts {
		args := h.Enter(dir, fill(o.command, i, net)...)
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = environ, stdout, stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true} // a terminal's Ctrl-C would be its second signal
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 30 * time.Second // ddplaunch gives its ranks ten
		if err = cmd.Start(); err != nil {
			err = fmt.Errorf("%s: %w", h.Name, err)
			break
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err != nil { // not all could be started
			_ = cmd.Cancel()
		}
	}
	for i, cmd := range cmds {
		if e := cmd.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %s: %w", net.Hosts[i].Name, o.command[0], e))
		}
	}
	return err
}

// keyVar is the secret that a job of several hosts needs.
const keyVar = "EBTRAIN_KEY"

// fill is a command line as host i is to run it.
func fill(command []string, i int, net *netns.Network) []string {
	r := strings.NewReplacer("{host}", strconv.Itoa(i), "{hosts}", strconv.Itoa(len(net.Hosts)), "{host0}", net.Hosts[0].Addr)
	out := make([]string, len(command))
	for k, arg := range command {
		out[k] = r.Replace(arg)
	}
	return out
}
