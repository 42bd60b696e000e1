package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ebtrain/launch/env"
	"ebtrain/launch/statuspage"
)

// verdictWait is how long a rank that raised an abort waits for the launcher's
// decision before it takes its own cause for it.
const verdictWait = time.Second

var errClosed = errors.New("the group is closed")

// Group is this process's membership in its job.
type Group struct {
	w     env.Worker
	hosts []string
	nodes []int // of each rank
	addr  string
	ports Ports
	job   string
	key   []byte
	grows bool             // the group may be formed again with fewer or more nodes
	conn  *Conn            // nil in a group of one
	page  *statuspage.Page // nil in a group of one

	wg       sync.WaitGroup
	gathered chan Message // answer to the exchange under way
	done     chan struct{}
	stop     chan struct{}
	flights  chan struct{} // capacity 1
	signals  chan os.Signal
	usr2     chan os.Signal
	closed   chan struct{}
	stopOnce sync.Once
	stopBy   syscall.Signal // set before stop is closed; 0: no signal

	calls sync.Mutex // one exchange at a time
	seq   uint64     // guarded by calls

	mu       sync.Mutex
	err      error // set before done is closed
	raised   bool
	isClosed bool
}

// Rank is this process's number among all ranks, from 0.
func (g *Group) Rank() int { return g.w.Rank }

// Size is the number of ranks.
func (g *Group) Size() int { return g.w.Size }

// LocalRank is this process's number among the ranks of its node, from 0.
func (g *Group) LocalRank() int { return g.w.LocalRank }

// LocalSize is the number of ranks on this node.
func (g *Group) LocalSize() int { return g.w.LocalSize }

// Restart is how often the group has been formed again: the epoch.
func (g *Group) Restart() int { return g.w.Restart }

// Hosts is the identity of each rank's host, indexed by rank; see LocalHost. The
// slice is the caller's.
func (g *Group) Hosts() []string { return slices.Clone(g.hosts) }

// Nodes is the number of each rank's node, and so of its launcher, indexed by
// rank. The slice is the caller's.
func (g *Group) Nodes() []int { return slices.Clone(g.nodes) }

// Addr is the IP address, IPv4 or IPv6, at which the ranks of other nodes reach
// this one: on the network that the user chose for data, or by which this node
// reaches node 0. With one node it is that of the loopback.
func (g *Group) Addr() string { return g.addr }

// Ports are those that this rank may listen on at Addr.
func (g *Group) Ports() Ports { return g.ports }

// Job is the name of this group, the same on all ranks and different from that
// of every other group, also of this job's other epochs. It holds letters,
// digits, '-', '_' and '.' only.
func (g *Group) Job() string { return g.job }

// Key is a secret of 32 bytes that only the ranks of this group know. The
// slice is the caller's.
func (g *Group) Key() []byte { return bytes.Clone(g.key) }

// Exchange gathers one blob of every rank, at most MaxBlob bytes each and
// MaxExchange bytes together; element r of the result is rank r's. All ranks
// make the same exchanges in the same order; name is compared, and a
// difference ends the group. When ctx ends first, the group is aborted: an
// exchange cannot be abandoned by one rank alone.
func (g *Group) Exchange(ctx context.Context, name string, mine []byte) ([][]byte, error) {
	g.calls.Lock()
	defer g.calls.Unlock()
	if len(mine) > MaxBlob {
		return nil, fmt.Errorf("exchange %q: %d bytes are more than %d", name, len(mine), MaxBlob)
	}
	if err := g.usable(); err != nil {
		return nil, fmt.Errorf("exchange %q: %w", name, err)
	}
	if g.conn == nil {
		return [][]byte{bytes.Clone(mine)}, nil
	}
	g.page.Began(statuspage.Exchanges, g.seq+1)
	blob := append([]byte{}, mine...) // not nil: a blob without bytes is still a blob
	if err := g.conn.Send(Message{Kind: KindExchange, Epoch: g.w.Restart, Seq: g.seq, Name: name, Blobs: [][]byte{blob}}); err != nil {
		select {
		case <-g.done: // the launcher is gone; receive knows
			err = g.Err()
		case <-g.closed:
		}
		return nil, fmt.Errorf("exchange %q: %w", name, err)
	}
	select {
	case m := <-g.gathered:
		if m.Seq != g.seq || len(m.Blobs) != g.w.Size {
			return nil, fmt.Errorf("exchange %q: the launcher answered exchange %d with %d blobs, want %d with %d", name, m.Seq, len(m.Blobs), g.seq, g.w.Size)
		}
		g.seq++
		g.page.Ended(statuspage.Exchanges, g.seq)
		return m.Blobs, nil
	case <-g.done:
		return nil, fmt.Errorf("exchange %q: %w", name, g.Err())
	case <-g.closed:
		return nil, fmt.Errorf("exchange %q: %w", name, errClosed)
	case <-ctx.Done():
		err := fmt.Errorf("exchange %q: %w", name, context.Cause(ctx))
		g.Abort(err)
		return nil, err
	}
}

// Barrier returns once every rank has called it with the same name.
func (g *Group) Barrier(ctx context.Context, name string) error {
	_, err := g.Exchange(ctx, "barrier "+name, nil)
	return err
}

// Progress records what this rank is doing, for the message that tells of its
// death: "during <phase> <label>, seq <seq>, step <step>". A negative step and
// an empty label are left out. It costs some ten nanoseconds and never blocks.
func (g *Group) Progress(step int64, phase string, seq uint64, label string) {
	if g.page != nil {
		g.page.Write(statuspage.Report{Step: step, Phase: phase, Seq: seq, Label: label})
	}
}

// Collective is what a rank tells of one of its collectives.
type Collective = statuspage.Collective

// Began says that this rank has begun a collective, and Ended that it has ended it,
// which are numbered from 0: so its launcher knows which ranks wait, and for whom,
// and what each did last. They cost as little as Progress.
func (g *Group) Began(c Collective) {
	if g.page != nil {
		g.page.Begin(c)
	}
}

// Ended says that this rank has ended collective seq, and whether that failed; see
// Began.
func (g *Group) Ended(seq uint64, failed bool) {
	if g.page != nil {
		g.page.End(seq, time.Now(), failed)
	}
}

// Records says in which folder this job keeps what is written of it: there the
// launcher of node 0 puts the tables of last collectives, unless it was given a
// folder of its own. A relative path is one of this process.
func (g *Group) Records(dir string) error {
	if g.conn == nil {
		return nil
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return g.conn.Send(Message{Kind: KindRecords, Epoch: g.w.Restart, Text: path})
}

// Heard says that data have arrived from a rank of another node: so the launcher
// knows that node to live, whatever becomes of its own messages on a network that
// is full of data. It costs as little as Progress.
func (g *Group) Heard(rank int) {
	if g.page != nil {
		g.page.Heard(g.nodes[rank])
	}
}

// Share says that what the ranks share is in parts, of which each rank takes
// equally many, and returns at once if that is possible. If not, and the number of
// nodes may vary, the group is formed again of fewer: Share returns when that is
// decided, with the error that every call then returns. All ranks call it with
// the same number. Without an error the ranks must see themselves whether they
// can share.
func (g *Group) Share(ctx context.Context, parts int) error {
	if g.conn == nil || parts < 1 {
		return nil
	}
	if err := g.conn.Send(Message{Kind: KindShare, Epoch: g.w.Restart, Code: parts}); err != nil {
		return err
	}
	if !g.grows || parts%g.w.Size == 0 {
		return nil
	}
	select {
	case <-g.done:
		return g.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(verdictWait): // there is no such number of nodes
		return nil
	}
}

// Columns is how wide this rank's lines may be on the launcher's terminal now;
// 0 if there is no launcher, or its width is not known.
func (g *Group) Columns() int {
	if g.page == nil {
		return 0
	}
	return g.page.Width()
}

// Done is closed when the group has been aborted. Err then says why, and the
// process has about a second to say so and exit.
func (g *Group) Done() <-chan struct{} { return g.done }

// Err is nil until Done is closed and then the cause, the same on all ranks: a
// *Cause whose text is the one line to print. errors.Is(Err(), ErrAborted).
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Abort ends the group on every rank. It does not wait; Done is closed soon
// after, always, and Err may then name a better cause than the one given: a
// rank that lost its peer learns here that the peer was killed, and by what.
// Only the first call counts.
func (g *Group) Abort(cause error) { g.raise(CauseRaised, cause) }

// Unfit is Abort where cause is of this host alone, and the others may do without it: if they
// suffice, which is for an elastic job only, they are started again, and this node ends.
func (g *Group) Unfit(cause error) { g.raise(CauseUnfit, cause) }

func (g *Group) raise(kind CauseKind, cause error) {
	g.mu.Lock()
	first := !g.raised && g.err == nil && !g.isClosed
	g.raised = true
	g.mu.Unlock()
	if !first {
		return
	}
	text := "aborted"
	if cause != nil {
		text = cause.Error()
	}
	c := &Cause{Kind: kind, Rank: g.w.Rank, Node: g.w.Node, Host: g.hostName(), Pid: os.Getpid(), Text: text}
	if g.conn == nil || g.conn.Send(Message{Kind: KindFail, Epoch: g.w.Restart, Cause: c}) != nil {
		g.end(c)
		return
	}
	time.AfterFunc(verdictWait, func() { g.end(c) })
}

// StopRequested is closed when the ranks should stop at a step they agree on,
// because the user or the scheduler asked any of them, or their launcher, to.
func (g *Group) StopRequested() <-chan struct{} { return g.stop }

// StopSignal is the signal by which the ranks were asked to stop, to be read after
// StopRequested; SIGTERM where the end of the job's time asked.
func (g *Group) StopSignal() syscall.Signal {
	if g.stopBy == 0 {
		return syscall.SIGTERM
	}
	return g.stopBy
}

// askedBy closes StopRequested, once.
func (g *Group) askedBy(s syscall.Signal) {
	g.stopOnce.Do(func() {
		g.stopBy = s
		close(g.stop)
	})
}

// Close leaves the group. It may be called more than once. A rank that exits
// with code 0 after Close has ended well.
func (g *Group) Close() error {
	g.mu.Lock()
	again := g.isClosed
	g.isClosed = true
	g.mu.Unlock()
	if again {
		return nil
	}
	signal.Stop(g.signals)
	signal.Stop(g.usr2)
	close(g.closed)
	var err error
	if g.conn != nil {
		if g.Err() == nil {
			err = g.conn.Send(Message{Kind: KindBye, Epoch: g.w.Restart})
		}
		err = errors.Join(err, g.conn.Close())
	}
	g.wg.Wait()
	if g.page != nil {
		err = errors.Join(err, g.page.Close())
	}
	return err
}

// receive handles the launcher's messages until the connection ends.
func (g *Group) receive() {
	for {
		m, err := g.conn.Receive()
		if err != nil {
			g.mu.Lock()
			closing := g.isClosed
			g.mu.Unlock()
			if !closing {
				g.end(&Cause{Kind: CauseNode, Rank: -1, Node: g.w.Node, Host: g.hostName(), Text: fmt.Sprintf("its launcher is gone (%v)", err)})
			}
			return
		}
		switch m.Kind {
		case KindGathered:
			select {
			case g.gathered <- m:
			default: // nobody waits for a second answer
			}
		case KindAbort:
			g.end(m.Cause)
		case KindFlight:
			g.askFlight()
		case KindStop:
			g.askedBy(syscall.Signal(m.Code))
		}
	}
}

// end closes Done, with the first cause.
func (g *Group) end(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = cause
		close(g.done)
	}
}

// usable is why the group cannot be used any more, nil if it can.
func (g *Group) usable() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosed && g.err == nil {
		return errClosed
	}
	return g.err
}

// hostName is the part of this rank's host identity that is for people.
func (g *Group) hostName() string {
	id := g.hosts[g.w.Rank]
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		return id[:i]
	}
	return id
}
