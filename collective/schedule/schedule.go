// Package schedule is the order in which the ranks of a group stage, meet, reduce,
// send and receive to carry out a collective: lists of steps, as data. The transport
// (package host) carries them out on memory and sockets; the simulator (package
// simulate) carries out the same lists on clocks.
//
// A list is that of one rank. Inside a host the steps of its ranks meet in barriers;
// between hosts those of their leaders meet in messages, of which every one that is
// sent in one list is waited for in another, in the same order. What a step says of
// sizes follows from the Call alone, so every rank can make its own list.
//
// Functions are pure and append to a list that the caller keeps, so that in the long
// run nothing is allocated.
package schedule

import "ebtrain/collective"

// Small is the size in bytes up to which every rank of a lone host reduces everything
// itself, after one barrier.
const Small = 8 << 10

// Doubles is the size in bytes of a vector up to which leaders reduce by recursive
// doubling, of which each sends all of the vector in each round; beyond it each sends
// each its slice, or, of many hosts, those of its row and its columns (Grid).
const Doubles = 64 << 10

// Sizes in bytes of a half of a rank's staging area on a lone host; NetChunk is that on several.
const (
	LocalChunk = 1 << 20   // stays in the second-level cache
	SumChunk   = 256 << 10 // of a vector that the ranks sum: what they read and write, twice for each, stays in their caches
)

// NetChunk is the size of a half of a rank's staging area on so many hosts, more than one.
// Leaders exchange as much at a time, where a vector lies as from staging areas, since each
// host chooses that for itself: 2 MiB, which is enough to fill a fast network, while one travels
// and the next is reduced; or so much more that a slice has 8 KiB.
func NetChunk(hosts int) int {
	const unit, slice = 2 << 20, 8 << 10
	return max(1, (hosts*slice+unit-1)/unit) * unit
}

// HeaderBytes is what travels in front of the data of a message, or alone.
const HeaderBytes = 128

// Verb is what a Step does.
type Verb uint8

const (
	// Stage copies this rank's bytes to where the others of its host can read them.
	Stage Verb = iota + 1
	// Show tells the host what this rank has started, and enters the first barrier.
	Show
	// Meet passes the first barrier and compares what the ranks of the host have started.
	Meet
	// Barrier waits for all ranks of the host.
	Barrier
	// Reduce reads this rank's share of what the host's ranks bring, and writes its
	// reduction.
	Reduce
	// Copy takes what this rank needs out of the memory of others.
	Copy
	// Turn changes the halves of the staging areas; it takes no time.
	Turn

	// Those below are the leader's alone.

	// Ask sends a header to every other leader.
	Ask
	// Agree waits for the headers of Ask and compares them.
	Agree
	// Post gives memory to what will arrive; it takes no time.
	Post
	// Send sends What, to whom What says.
	Send
	// Wait waits for What that others send.
	Wait
	// Combine reduces what has come with what is here.
	Combine
	// Pack puts what a leader brings to recursive doubling behind a header.
	Pack
)

// What is sent, and by whom to whom. A slice is a host's part of a chunk (see Share).
type What uint8

const (
	// Addends are slices that each leader sends to the host whose they are, all to all.
	Addends What = iota + 1
	// Results are slices that the host whose they are sends to all.
	Results
	// Pieces are slices that the root's host sends to those whose they are.
	Pieces
	// Rest are Results that are not sent to the root's host.
	Rest
	// Whole is a header and the whole vector, in a round of recursive doubling: to
	// those that Rounds names, from the one that it names.
	Whole

	// Those below are of a Grid. A leader sends in its row and, for each slice that it
	// holds, to a holder of that in another row.

	// RowAddends are slices that each leader sends to those of its row that hold them.
	RowAddends
	// ColumnAddends are the row's sums of slices, which their holder sends to that in the slice's own row.
	ColumnAddends
	// ColumnResults are slices that the holder in their own row sends to those in all others.
	ColumnResults
	// RowResults are slices that who holds them sends to its row.
	RowResults
)

// Step is one thing that a rank does.
type Step struct {
	Do   Verb
	What What // Post, Send, Wait and Combine

	// Lo and Hi bound the bytes that the step is about: of the vector, or, of a
	// reduce-scatter and an all-gather, of every part of it.
	Lo, Hi int
	// Bytes are what the rank copies (Stage, Copy, Pack) or reads (Reduce). Those of
	// messages follow from slices.
	Bytes int
	Round int  // of Whole, from 0
	Last  bool // Combine of Whole: the last round, which leaves the result
}

// Call is a collective as one rank sees it.
type Call struct {
	Kind  collective.Kind
	Bytes int // of the vector
	Elem  int // bytes of an element
	Wide  int // bytes of an element of a partial result, which of bf16 is a float32

	Ranks  int // of the group
	Hosts  int
	Locals int // ranks of this host
	Local  int // this rank's number among them; 0 leads
	Rounds int // of this host: len(Rounds(host, Hosts))
	Width  int // of the rows of the Grid in which leaders exchange; 0 without one

	Root     bool // Broadcast: this rank's vector is sent
	RootHost bool // Broadcast: that of a rank of this host is

	Outside bool // this rank's vector lies where the others of its host cannot read it

	// What is known when the ranks of the host have met: whether all, and whether any,
	// of their vectors that are read lie where all can read them.
	All, Some bool
}

// Leads says whether this rank speaks to other hosts.
func (c Call) Leads() bool { return c.Local == 0 }

// Doubled says whether leaders reduce by recursive doubling.
func (c Call) Doubled() bool { return c.Kind == collective.AllReduce && c.Bytes <= Doubles }

// InPlace says whether the leader's own vector is exchanged where it lies.
func (c Call) InPlace() bool {
	return c.Hosts > 1 && c.Kind == collective.AllReduce && !c.Doubled() && c.Wide == c.Elem && (c.Locals == 1 || c.All)
}

// extent is what a collective walks through (all of the vector, or every part at
// the same time), and how much of that a staging area holds.
func (c Call) extent() (total, chunk int) {
	chunk = LocalChunk
	if c.Hosts > 1 {
		chunk = NetChunk(c.Hosts)
	}
	part := c.Bytes / c.Elem / c.Ranks * c.Elem
	switch {
	case c.Kind == collective.ReduceScatter || c.Kind == collective.AllGather && c.Hosts > 1:
		return part, max(8, chunk/c.Ranks/8*8)
	case c.Kind == collective.AllGather:
		return part, chunk
	case c.Hosts == 1:
		return c.Bytes, SumChunk
	}
	return c.Bytes, chunk
}

// Open appends what a rank does until it has met those of its host.
func (c Call) Open(steps []Step) []Step {
	if c.Bytes > 0 && c.Kind != collective.Barrier {
		total, chunk := c.extent()
		steps = c.stage(steps, 0, min(total, chunk))
	}
	return append(steps, Step{Do: Show}, Step{Do: Meet})
}

// Rest appends all that follows.
func (c Call) Rest(steps []Step) []Step {
	switch {
	case c.Hosts > 1:
		return c.between(steps)
	case c.Bytes == 0 || c.Kind == collective.Barrier:
		return steps
	}
	return c.within(steps)
}

// Share cuts n elements into parts and is the i-th: [lo, hi). Inner bounds are
// multiples of 64.
func Share(n, parts, i int) (lo, hi int) {
	const unit = 64
	units := (n + unit - 1) / unit
	return min(n, units*i/parts*unit), min(n, units*(i+1)/parts*unit)
}
