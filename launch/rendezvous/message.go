package rendezvous

import "time"

// Kind is what a Message says.
type Kind string

const (
	KindRegister Kind = "register" // node → coordinator: Node, Command
	KindAssign   Kind = "assign"   // coordinator → nodes: Nodes, Job
	KindAck      Kind = "ack"      // node → coordinator
	KindCommit   Kind = "commit"   // coordinator → nodes
	KindRefuse   Kind = "refuse"   // coordinator → node: Cause
	KindAbsent   Kind = "absent"   // launcher → coordinator: it does not take part; Text says who it is, and why
	KindWait     Kind = "wait"     // coordinator → node: it is not needed now; Text says why
	KindShare    Kind = "share"    // rank → node → coordinator: the number of ranks must divide Code
	KindRegroup  Kind = "regroup"  // coordinator → nodes → ranks, as stop: stop, to be started again; Text. Back from a node: they cannot
	KindExchange Kind = "exchange" // rank → node → coordinator: Seq, Name, Blobs
	KindGathered Kind = "gathered" // coordinator → nodes → ranks: Seq, Name, Blobs
	KindFail     Kind = "fail"     // rank → node → coordinator: Cause
	KindAbort    Kind = "abort"    // coordinator → nodes → ranks: Cause, Restart, Seq as in flight
	KindStop     Kind = "stop"     // any → coordinator → nodes → ranks: Text is the signal's name, Code its number, Grace
	KindDone     Kind = "done"     // node → coordinator: Code
	KindEnd      Kind = "end"      // coordinator → nodes: Code
	KindVitals   Kind = "vitals"   // node → coordinator: Vitals; may be lost
	KindFlight   Kind = "flight"   // rank → node → coordinator → nodes → ranks: show the last collectives; Seq of the table
	KindFlown    Kind = "flown"    // node → coordinator, and back to who asked: Flown, Seq of the table
	KindRecords  Kind = "records"  // rank → node: Text is a folder
	KindLines    Kind = "lines"    // launcher → that of node 0: Lines up to Seq, the last ones if Code is set
	KindTaken    Kind = "taken"    // back: it has those up to Seq
	KindHello    Kind = "hello"    // rank → node: Text is the group, Code the pid
	KindWelcome  Kind = "welcome"  // node → rank: Nodes, Job, Key, Ports
	KindBye      Kind = "bye"      // rank → node: it needs the group no more
)

// MaxBlob is the largest blob of one rank in an exchange, and MaxExchange the
// largest sum over all ranks, in bytes.
const (
	MaxBlob     = 1 << 20
	MaxExchange = 8 << 20
)

// Message is what nodes, coordinator and ranks send each other. Which fields
// are used is said at each Kind.
type Message struct {
	Kind    Kind          `json:"kind"`
	Epoch   int           `json:"epoch"`
	Node    *NodeInfo     `json:"node,omitempty"`
	Command *Command      `json:"command,omitempty"`
	Nodes   []NodeInfo    `json:"nodes,omitempty"`
	Job     string        `json:"job,omitempty"`
	Key     []byte        `json:"key,omitempty"`
	Seq     uint64        `json:"seq,omitempty"`
	Name    string        `json:"name,omitempty"`
	Blobs   [][]byte      `json:"-"` // see Encode
	Cause   *Cause        `json:"cause,omitempty"`
	Text    string        `json:"text,omitempty"`
	Code    int           `json:"code,omitempty"`
	Restart bool          `json:"restart,omitempty"`
	Vitals  []Vital       `json:"vitals,omitempty"`
	Flown   []Flown       `json:"flown,omitempty"`
	Lines   []Line        `json:"lines,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"` // beyond which who is asked to stop is killed, if longer than configured
	Ports   Ports         `json:"ports,omitzero"`

	once *encoding // of a message that goes to many, whose fields do not change any more; nil otherwise
}

// Line is a line that some ranks have written.
type Line struct {
	Stream int    // 0 for standard output, 1 for standard error
	Text   string // any bytes
	Ranks  []int
}

// NodeInfo describes one launcher.
type NodeInfo struct {
	Name   string `json:"name"`            // unique among all launchers ever
	Host   string `json:"host"`            // host name, for people
	HostID string `json:"host_id"`         // equal for launchers that may share memory
	Addr   string `json:"addr"`            // IP
	Port   int    `json:"port"`            // a free port, offered as MASTER_PORT
	Nproc  int    `json:"nproc"`           // ranks on this node
	Want   int    `json:"want"`            // node number asked for, -1 for any
	Nodes  int    `json:"nodes"`           // nodes it believes the job has at most
	Least  int    `json:"least,omitempty"` // and at least, if that is fewer
}

// Size is the number of ranks on nodes.
func Size(nodes []NodeInfo) int { return Base(nodes, len(nodes)) }

// Base is the first rank of node i: ranks are counted by node, then by local
// rank.
func Base(nodes []NodeInfo, i int) int {
	base := 0
	for _, n := range nodes[:i] {
		base += n.Nproc
	}
	return base
}

// Loss is what has become of a launcher that is lost.
type Loss int

const (
	Unreachable Loss = iota // its host is dead or cannot be reached, or it has left
	Killed                  // it is dead, and its host lives
	Mute                    // it says nothing, and its host lives
)

// Inbound is a message from the launcher called From or, if Lost, the news
// that it is dead, unreachable, or has left.
type Inbound struct {
	From        string
	Msg         Message
	Lost        bool
	Coordinator bool // the launcher that is lost held the coordinator
	How         Loss // it was lost
	Alone       bool // no other launcher can be reached either: this host is cut off
}
