package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/rendezvous"
	"ebtrain/launch/variable"
)

// parseNodes finds out how many nodes there are, which one this is and where node
// 0 is: what is not said is taken from the step of which this is a task.
func parseNodes(o *options, r raw, fs *pflag.FlagSet) error {
	var err error
	if o.Least, o.Nodes, err = parseSpan(r.nnodes); err != nil {
		return err
	}
	if o.Nproc, err = countProcs(r.nproc, r.environ); err != nil {
		return err
	}
	if r.maxRestarts < 0 {
		return cliflag.Usage("--max-restarts %d: want 0 or more", r.maxRestarts)
	}
	if r.standalone && o.Nodes > 1 {
		return cliflag.Usage("--standalone means one node, --nnodes says %d: leave one of them out", o.Nodes)
	}
	if r.join != "" && r.endpoint != "" {
		return cliflag.Usage("--join and --rdzv-endpoint are the same address: give one of them")
	}
	if !told(r) {
		if placed, err := placeInStep(o, r, fs.Changed("nnodes")); placed || err != nil {
			return err
		}
	}
	if err := parseEndpoint(o, r); err != nil {
		return err
	}
	return parseRank(o, r, fs)
}

// parseSpan reads "4" or "2:4", a least and a largest number of nodes.
func parseSpan(s string) (least, most int, err error) {
	low, high, ranged := strings.Cut(s, ":")
	if !ranged {
		high = low
	}
	least, err1 := strconv.Atoi(low)
	most, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || least < 1 || most < least {
		return 0, 0, cliflag.Usage("--nnodes %q: want a number of nodes, at least 1, or a least and a largest number, as in 2:4", s)
	}
	return least, most, nil
}

// starter is the program that has started the tasks of a step, and oneEach how it starts
// one on each node. srun ignores --ntasks-per-node where the job was given another number of
// tasks.
func starter(s env.Step) (by, oneEach string) {
	switch s.Source {
	case env.SourcePMI:
		return "mpiexec", "mpiexec -ppn 1"
	case env.SourceOMPI:
		return "mpirun", "mpirun -npernode 1"
	}
	return "srun", fmt.Sprintf("srun --nodes=%d --ntasks=%[1]d", s.Nodes)
}

// told says that the user has told this launcher's place: it is none of a step's.
func told(r raw) bool { return r.join != "" || r.nodeRank != "" || r.standalone }

// inRank says that a rank of another launcher has started this one.
func inRank(environ []string) bool { return variable.Get(environ, env.GroupVar) != "" }

// placeInStep makes this launcher one of those that srun, mpirun or mpiexec has started,
// one on each node of the step; false if it has started no others.
func placeInStep(o *options, r raw, nodesTold bool) (bool, error) {
	step, in, err := env.FindStep(r.environ)
	by, oneEach := starter(step)
	switch n := env.BatchNodes(r.environ); {
	case err != nil:
		return false, cliflag.AsUsage(err)
	case !in && n > 1 && !nodesTold:
		return false, cliflag.Usage("the job has %d nodes, but ddplaunch was not started by srun and would use this one alone: start it with srun, or give --standalone", n)
	case !in || step.Tasks == 1:
		return false, nil
	case inRank(r.environ): // the step's tasks are the launchers around it
		return false, cliflag.Usage("this ddplaunch was started by a rank of a job that %s has started: leave one of the two launchers out, or give --standalone for a job of its own on this node", by)
	case step.Shared():
		return false, cliflag.Usage("%s has started several ddplaunch on one node: want one on each (%s), or no ddplaunch and one task for each rank (%s train ...)", by, oneEach, by)
	case nodesTold && o.Nodes != step.Tasks:
		return false, cliflag.Usage("--nnodes %s, but %s has started ddplaunch on %d nodes: leave --nnodes out", r.nnodes, by, step.Tasks)
	case !nodesTold:
		o.Least, o.Nodes = step.Tasks, step.Tasks
	}
	if r.endpoint != "" {
		if err := parseEndpoint(o, r); err != nil {
			return false, err
		}
	}
	o.Place(step)
	return true, nil
}

// parseEndpoint checks where node 0 is.
func parseEndpoint(o *options, r raw) error {
	o.Endpoint = r.endpoint + r.join // one of them
	if o.Endpoint == "" {
		return nil
	}
	if r.standalone || o.Nodes == 1 {
		return cliflag.Usage("an address of node 0 (%s) makes no sense with one node: leave it out, or give --nnodes", o.Endpoint)
	}
	if _, err := netip.ParseAddr(o.Endpoint); err == nil && strings.Contains(o.Endpoint, ":") {
		return cliflag.Usage("address %q: one of IPv6 stands in brackets: want [ADDRESS]:PORT or [ADDRESS], for example [fd00::1]:29400 or [fd00::1]", o.Endpoint)
	}
	if strings.HasPrefix(o.Endpoint, "[") && strings.HasSuffix(o.Endpoint, "]") {
		return checkZone(o.Endpoint, o.Endpoint[1:len(o.Endpoint)-1])
	}
	if !strings.Contains(o.Endpoint, ":") {
		return nil // without a port
	}
	host, port, err := net.SplitHostPort(o.Endpoint)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || n < 0 || n > 65535 || host == "" || r.join != "" && n == 0 {
		return cliflag.Usage("address %q: want HOST:PORT or HOST, for example node01:29400, [fd00::1]:29400 or node01", o.Endpoint)
	}
	return checkZone(o.Endpoint, host)
}

// checkZone refuses an address of IPv6 that every link may have, unless the link is named.
func checkZone(endpoint, host string) error {
	if a, err := netip.ParseAddr(host); err == nil && a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "" {
		return cliflag.Usage("address %q is of one link: name this node's interface to it, as in [%s%%eth0]", endpoint, host)
	}
	return nil
}

// parseRank finds out which node this is.
func parseRank(o *options, r raw, fs *pflag.FlagSet) error {
	joins := r.join != ""
	o.NodeRank = 0
	if joins {
		o.NodeRank = -1
	}
	if r.nodeRank != "" {
		var err error
		if o.NodeRank, err = strconv.Atoi(r.nodeRank); err != nil || o.NodeRank < 0 {
			return cliflag.Usage("--node-rank %q: want this node's number, 0 to %d", r.nodeRank, o.Nodes-1)
		}
	}
	switch {
	case o.NodeRank >= o.Nodes:
		return cliflag.Usage("--node-rank %d is not below --nnodes %d", o.NodeRank, o.Nodes)
	case o.NodeRank == 0 && joins:
		return cliflag.Usage("--node-rank 0 is the node that others join: give it --rdzv-endpoint, not --join")
	case o.NodeRank > 0 && o.Endpoint == "":
		return cliflag.Usage("--node-rank %d needs the address of node 0: --join HOST", o.NodeRank)
	case o.Nodes > 1 && !fs.Changed("node-rank") && !joins:
		return cliflag.Usage("--nnodes %d: give --node-rank 0 on one node, and --join HOST on the others", o.Nodes)
	}
	var err error
	o.Hosts, err = env.StepHosts(r.environ) // if they are as many as launchers
	return cliflag.AsUsage(err)
}

func parsePorts(o *options, r raw, _ *pflag.FlagSet) error {
	if r.portRange == "" {
		return nil
	}
	var err error
	if o.Ports, err = rendezvous.ParsePorts(r.portRange); err != nil {
		return cliflag.Usage("--port-range %w", err)
	}
	return nil
}

// maxRunID is the longest name of a job, in bytes: that of its launchers has 255, see
// member.Config, and a prefix.
const maxRunID = 255 - len("ebtrain/")

// checkRunID refuses a name that is too long for launchers to know each other by.
func checkRunID(o *options, r raw, _ *pflag.FlagSet) error {
	if n := len(r.runID); o.Nodes > 1 && n > maxRunID {
		return cliflag.Usage("--rdzv-id has %d bytes, want at most %d", n, maxRunID)
	}
	return nil
}

// checkPorts refuses a range that is too small for a launcher and its ranks.
func checkPorts(o *options, r raw, _ *pflag.FlagSet) error {
	if o.Nodes > 1 && o.Ports.Count() == 1 {
		return cliflag.Usage("--port-range %s: with several nodes ddplaunch listens on one port of each, and the ranks on others: want a larger range, for example 29400:29499", r.portRange)
	}
	return nil
}
