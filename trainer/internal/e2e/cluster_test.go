package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	clusterNodes = 4
	siteVar      = "E2E_SITE" // marks the processes of a site, wherever they are in the tree
)

// cluster is a Slurm of four nodes, with daemons, key and state of its own: all on
// this machine, or each on one of the machines that a test has made of it.
type cluster struct {
	*site
	dir      string // of the daemons
	machines []machine
	daemons  []daemon
	beside   string // number of a job that goes on beside what is tested
}

// daemon is one that runs until its holder, a shell, reads the end of its input:
// also if the test is killed.
type daemon struct {
	cmd   *exec.Cmd
	input io.Closer
}

// newCluster starts Slurm, on machines if there are any. It ends with the test.
func newCluster(s *site, machines []machine) *cluster {
	s.t.Helper()
	if os.Geteuid() != 0 {
		s.t.Skip("needs root, to start a Slurm of its own")
	}
	for _, tool := range []string{"slurmctld", "slurmd", "srun", "munged"} {
		if _, err := exec.LookPath(tool); err != nil {
			s.t.Skipf("needs %s, of Slurm: install slurm-wlm and munge", tool)
		}
	}
	dir, err := os.MkdirTemp("", "ebtrain-slurm-")
	if err != nil {
		s.t.Fatal(err)
	}
	c := &cluster{site: s, dir: dir, machines: machines}
	s.t.Cleanup(c.end)
	if err := os.Chmod(dir, 0o711); err != nil { // munge insists on who may write where its socket is
		s.t.Fatal(err)
	}
	for _, sub := range []string{"state", "log", "run", "munge"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	key := make([]byte, 128)
	rand.Read(key)
	if err := os.WriteFile(c.in("munge/munge.key"), key, 0o400); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(c.in("slurm.conf"), []byte(c.config()), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.env = append(s.env, "SLURM_CONF="+c.in("slurm.conf"), siteVar+"="+s.dir, "PATH="+s.bin+":"+os.Getenv("PATH"))
	c.start1(0, "munged", "--foreground", "--force", "--socket="+c.in("munge/munge.socket"), "--key-file="+c.in("munge/munge.key"), "--pid-file="+c.in("munge/munged.pid"), "--log-file="+c.in("munge/munged.log"), "--seed-file="+c.in("munge/seed"))
	c.start1(0, "slurmctld", "-D", "-c")
	for i := range clusterNodes {
		args := []string{"slurmd", "-D"}
		if machines == nil {
			args = append(args, "-N", c.node(i))
		}
		c.start1(i, args...)
	}
	c.await("all nodes idle", func() bool {
		return strings.TrimSpace(c.ask("sinfo", "-h", "-t", "idle", "-o", "%D")) == fmt.Sprint(clusterNodes)
	})
	return c
}

// run runs a part of a test on the cluster.
func (c *cluster) run(t *testing.T, name string, part func(*testing.T, *cluster)) {
	t.Run(name, func(t *testing.T) {
		site, inner := *c.site, *c
		site.t, inner.site = t, &site
		part(t, &inner)
	})
}

func (c *cluster) in(name string) string { return filepath.Join(c.dir, name) }

// node is Slurm's name of node i, and its host name if it is a machine.
func (c *cluster) node(i int) string {
	if c.machines != nil {
		return c.machines[i].Name
	}
	return fmt.Sprint("n", i)
}

// config is slurm.conf.
func (c *cluster) config() string {
	c.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	controller, ports := host+"(127.0.0.1)", freePorts(c.t, clusterNodes+1)
	var nodes strings.Builder
	for i := range clusterNodes {
		fmt.Fprintf(&nodes, "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.%d Port=%d CPUs=64 RealMemory=2000\n", c.node(i), host, 11+i, ports[i])
	}
	if c.machines != nil {
		nodes.Reset()
		controller = c.node(0) + "(" + clusterAddr(0) + ")"
		for i := range clusterNodes {
			fmt.Fprintf(&nodes, "NodeName=%s NodeAddr=%s Port=%d CPUs=64 RealMemory=2000\n", c.node(i), clusterAddr(i), ports[i])
		}
	}
	return fmt.Sprintf(`ClusterName=ci
SlurmctldHost=%s
SlurmctldPort=%d
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[3]s/munge/munge.socket
CredType=cred/munge
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/spool-%%n
SlurmctldPidFile=%[3]s/run/slurmctld.pid
SlurmdPidFile=%[3]s/run/slurmd-%%n.pid
SlurmctldLogFile=%[3]s/log/slurmctld.log
SlurmdLogFile=%[3]s/log/slurmd-%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
KillWait=6
SlurmdTimeout=30
PropagateResourceLimits=NONE
%[4]sPartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
`, controller, ports[clusterNodes], c.dir, &nodes)
}

// freePorts are n ports that nobody listens on.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// on is the command line that runs args on machine i, if there are machines.
func (c *cluster) on(i int, args ...string) []string {
	if c.machines == nil {
		return args
	}
	return c.machines[i].enter(args...)
}

// start1 starts a daemon.
func (c *cluster) start1(i int, args ...string) {
	c.t.Helper()
	log, err := os.Create(c.in(fmt.Sprintf("log/%s-%d.out", args[0], len(c.daemons))))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil { // the daemon has a duplicate
			c.t.Error(err)
		}
	}()
	args = c.on(i, append([]string{"sh", "-c", `"$@" & cat; kill $!; wait $!`, "sh"}, args...)...)
	cmd := exec.Command(args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, log, log
	cmd.Env = append(clean(os.Environ()), "SLURM_CONF="+c.in("slurm.conf"))
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.daemons = append(c.daemons, daemon{cmd, in})
}

// end ends all jobs and the daemons, and looks for what is left of them.
func (c *cluster) end() {
	if len(c.daemons) > 1 {
		c.ask("scancel", "--user=root")
		c.await("the end of all jobs", func() bool { return c.ask("squeue", "-h") == "" })
	}
	for _, d := range slices.Backward(c.daemons) {
		_ = d.input.Close()
		late := time.AfterFunc(10*time.Second, func() {
			c.t.Errorf("%q did not end", d.cmd.Args)
			_ = d.cmd.Process.Kill()
		})
		exit := (*exec.ExitError)(nil)
		if err := d.cmd.Wait(); err != nil && !errors.As(err, &exit) {
			c.t.Error(err)
		}
		late.Stop()
	}
	left := ours(siteVar+"="+c.site.dir, "SLURM_CONF="+c.in("slurm.conf"))
	for pid, environ := range left {
		c.t.Errorf("process %d is left behind: %v", pid, environ)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if c.t.Failed() {
		c.t.Logf("Slurm's logs:\n%s", c.logs())
	}
	if err := os.RemoveAll(c.dir); err != nil {
		c.t.Error(err)
	}
}

// logs is the end of what the daemons have written.
func (c *cluster) logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(c.in("log/*"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		fmt.Fprintf(&all, "%s:\n%s\n", filepath.Base(f), b[max(0, len(b)-500):])
	}
	return all.String()
}

// ask is what a client of Slurm prints, also if it fails.
func (c *cluster) ask(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	args = c.on(0, args...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(clean(os.Environ()), "SLURM_CONF="+c.in("slurm.conf"))
	out, _ := cmd.Output()
	return string(out)
}

// srun starts srun.
func (c *cluster) srun(args ...string) *running {
	c.t.Helper()
	return c.startCommand(c.on(0, append([]string{"srun", "-Q"}, args...)...))
}

// sbatch submits a script, with arguments, and returns the number of the job.
func (c *cluster) sbatch(script string, args ...string) string {
	c.t.Helper()
	r := c.startCommand(c.on(0, append([]string{"sbatch", "--parsable", script}, args...)...))
	e := r.wait()
	if e.code != 0 {
		c.t.Fatalf("sbatch: %v", e)
	}
	return strings.TrimSpace(e.stdout)
}

// ours are the processes that have one of some variables, KEY=value, in their
// environment, and their environments.
func ours(vars ...string) map[int]map[string]string {
	found := map[int]map[string]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue // it has ended
		}
		environ := map[string]string{}
		mine := false
		for kv := range bytes.SplitSeq(b, []byte{0}) {
			mine = mine || slices.Contains(vars, string(kv))
			if key, value, ok := strings.Cut(string(kv), "="); ok {
				environ[key] = value
			}
		}
		if mine {
			found[pid] = environ
		}
	}
	return found
}

// tasks are the processes of this site's jobs, those of one beside aside.
func (c *cluster) tasks() map[int]map[string]string {
	all := ours(siteVar + "=" + c.site.dir)
	for pid, environ := range all {
		if environ["SLURM_PROCID"] == "" || environ["SLURM_JOB_ID"] == c.beside {
			delete(all, pid)
		}
	}
	return all
}

// slurmRanks are the ranks of this site's jobs by their numbers.
func (c *cluster) slurmRanks() map[int]int { return ranksOf(c.tasks()) }

// ranksOf are those of processes that are ranks of a launcher, by their numbers.
func ranksOf(processes map[int]map[string]string) map[int]int {
	byRank := map[int]int{}
	for pid, environ := range processes {
		if rank, err := strconv.Atoi(environ["RANK"]); err == nil && environ["EBTRAIN_CONTROL_FD"] != "" {
			byRank[rank] = pid
		}
	}
	return byRank
}

// slurmGone waits until no process of this site's jobs is left.
func (c *cluster) slurmGone() {
	c.t.Helper()
	c.await("no process is left", func() bool { return len(c.tasks()) == 0 })
}

// clusterAddr is the address of machine i of a cluster, on the network by which the
// machines know each other.
func clusterAddr(i int) string { return fmt.Sprint("10.77.0.", 10+i) }

// fourMachines makes node0 to node3, with names that resolve, on two bridges that
// node0 holds: eth0 and data0, where machine i is 10.78.0.(10+i).
func fourMachines(s *site) []machine {
	s.t.Helper()
	needMachines(s)
	var all []machine
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for i := range clusterNodes {
		all = append(all, hold(s, fmt.Sprint("node", i)))
		fmt.Fprintf(&hosts, "%s node%d\n", clusterAddr(i), i)
	}
	if err := os.WriteFile(s.path("hosts"), []byte(hosts.String()), 0o644); err != nil {
		s.t.Fatal(err)
	}
	all[0].sh("ip link add br0 type bridge; ip addr add " + clusterAddr(0) + "/24 dev br0; ip link set br0 up; ip link add data0 type bridge; ip addr add 10.78.0.10/24 dev data0; ip link set data0 up")
	for i, m := range all {
		m.sh("mount --bind hosts /etc/hosts")
		if i > 0 {
			all[0].sh(fmt.Sprintf("ip link add port%d type veth peer name eth0 netns %d; ip link set port%[1]d master br0 up", i, m.PID))
			all[0].sh(fmt.Sprintf("ip link add dataport%d type veth peer name data0 netns %d; ip link set dataport%[1]d master data0 up", i, m.PID))
			m.sh(fmt.Sprintf("ip addr add %s/24 dev eth0; ip link set eth0 up; ip addr add 10.78.0.%d/24 dev data0; ip link set data0 up", clusterAddr(i), 10+i))
		}
	}
	return all
}
