// Package forecast says how long many launchers take to form a group, and to end it
// when one of them is killed. The state machines of package rendezvous run with the
// messages they send, in simulated time: a message takes processor time where it is
// sent and where it comes, and travels; a launcher does one thing at a time, and a
// machine as many as it has processors.
//
// What is not simulated is charged as Costs say, measured on real launchers: the start
// of processes, connections, gossip. Not charged at all are pulses, and what the state
// machines themselves compute.
//
// A forecast is a pure function: no clock, no socket, no goroutine.
package forecast

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"ebtrain/launch/rendezvous"
)

// Costs are processor times unless they say otherwise.
type Costs struct {
	Message time.Duration // sending or receiving a message
	Encode  float64       // ns, for each byte of a list of launchers, once if it goes to many
	Carry   float64       // ns, the same at both ends, on the way
	Decode  float64       // ns, the same where it comes
	Start   time.Duration // a launcher and its rank, from its start until it registers
	Peer    time.Duration // for each other launcher that a launcher hears of by gossip as they join
	Join    time.Duration // the coordinator's, for each launcher that connects
	End     time.Duration // a launcher, from an abort to its end
	EndPeer time.Duration // and for each other launcher
	Latency time.Duration // of a message between processes, beyond what it costs; no processor time
}

// Site is where launchers run.
type Site struct {
	Launchers  int
	OneMachine bool    // all on one; otherwise each has a machine
	Processors int     // of each machine
	Share      float64 // of the processors, what launchers get; the rest is others'. 0 is all
	EndShare   float64 // the same after the death
	Bandwidth  float64 // bytes/s that a machine sends to others; 0 is any number
}

// Times are what is forecast, from the start of the launchers, all at once, or from the
// death of one.
type Times struct {
	Joined time.Duration // all ranks have been started
	Known  time.Duration // all launchers know who has died
	Ended  time.Duration // all launchers have ended
	Bytes  int           // of the largest message
	Sent   float64       // bytes of all messages
}

// task is something to be computed, and what comes after it.
type task struct {
	cost time.Duration
	then func()
}

// machine has processors, and a way out.
type machine struct {
	idle    int    // processors
	waiting []task // for one, first come, first served
	out     time.Duration
}

// launcher is one of them, with the coordinator if it is the first.
type launcher struct {
	machine *machine
	queue   []task // it does one thing at a time: the first is under way, or waits for a processor
	node    *rendezvous.Node
	knows   bool // who has died
	over    bool
}

// world is a simulation under way.
type world struct {
	costs     Costs
	site      Site
	now       time.Duration
	queue     events
	made      int // events, to keep their order
	launchers []*launcher
	byName    map[string]int
	coord     *rendezvous.Coordinator
	sizes     map[sized]int
	times     Times
	err       error

	working, knowing, ended int // launchers
}

// sized is a message that goes to many: its list of nodes is one slice.
type sized struct {
	kind  rendezvous.Kind
	nodes *rendezvous.NodeInfo
}

// Run is the forecast.
func Run(c Costs, s Site) (Times, error) {
	w := &world{costs: c, site: s, byName: map[string]int{}, sizes: map[sized]int{}}
	w.costs = c.of(s.Share)
	w.settle()
	if err := w.drain(&w.times.Joined); err != nil {
		return w.times, fmt.Errorf("the start of %d launchers: %w", s.Launchers, err)
	}
	if s.Launchers == 1 {
		return w.times, nil
	}
	w.costs = c.of(s.EndShare)
	return w.times, w.kill()
}

// of is the times with a share of the processors, 0 for all: processor times are as much longer.
func (c Costs) of(share float64) Costs {
	if share == 0 {
		return c
	}
	f := 1 / share
	for _, d := range []*time.Duration{&c.Message, &c.Start, &c.Peer, &c.Join, &c.End, &c.EndPeer} {
		*d = time.Duration(float64(*d) * f)
	}
	c.Encode, c.Carry, c.Decode = c.Encode*f, c.Carry*f, c.Decode*f
	return c
}

// settle makes the launchers and starts them.
func (w *world) settle() {
	n := w.site.Launchers
	w.coord = rendezvous.NewCoordinator(rendezvous.CoordinatorConfig{Nodes: n, Job: "job", Self: name(0), JoinWait: time.Hour, AckWait: time.Hour, Settle: 50 * time.Millisecond})
	shared := w.machine()
	for i := range n {
		at := shared
		if !w.site.OneMachine && i > 0 {
			at = w.machine()
		}
		w.byName[name(i)] = i
		want := -1
		if i == 0 {
			want = 0
		}
		w.launchers = append(w.launchers, &launcher{machine: at, node: rendezvous.NewNode(rendezvous.NodeConfig{
			Info: Info(i, n, want),
			Key:  []byte("k"), Join: "n:1", Again: again(n), JoinWait: time.Hour, AnswerWait: time.Second, StopWait: time.Second, KillWait: time.Second, GoneWait: time.Hour,
		})})
	}
	w.carryOut(0, w.coord.Start())
	for i := range w.launchers {
		w.work(i, w.costs.Start+time.Duration(n-1)*w.costs.Peer, func() {
			if i == 0 {
				w.carryOut(0, w.launchers[0].node.Start())
				return
			}
			w.after(2*w.costs.Latency, func() {
				w.aside(0, w.costs.Join, func() { // each on a goroutine of its own
					w.after(2*w.costs.Latency, func() { w.carryOut(i, w.launchers[i].node.Start()) })
				})
			})
		})
	}
}

// Info is what launcher i of n says of itself when it registers. It is as long, and as
// hard to compress, as those of real ones.
func Info(i, n, want int) rendezvous.NodeInfo {
	return rendezvous.NodeInfo{Name: name(i), Host: name(i)[:9], HostID: fmt.Sprintf("%s/%012x", name(i)[:9], random(i, 1)>>16),
		Addr: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Port: 32768 + int(random(i, 0)%28000), Nproc: 1, Want: want, Nodes: n}
}

// name is as long, and as hard to compress, as names of launchers are.
func name(i int) string {
	return fmt.Sprintf("node%05d-%d-%08x", i, random(i, 2)%4000000, random(i, 3)>>32)
}

// random is a number that looks like one (splitmix64).
func random(i, k int) uint64 {
	z := uint64(i*4+k) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// again is how long a launcher waits until it registers again; see package launcher.
func again(launchers int) time.Duration {
	return 200 * time.Millisecond * time.Duration(min(max(1, launchers/32), 5))
}

func (w *world) machine() *machine { return &machine{idle: w.site.Processors} }

// kill ends the last launcher, whose kernel says so at once, and lets time pass until
// all others have ended.
func (w *world) kill() error {
	begun, last := w.now, len(w.launchers)-1
	w.launchers[last].over = true
	w.knowing, w.ended = 1, 1
	w.after(w.costs.Latency, func() {
		w.work(0, w.costs.Message, func() { w.carryOut(0, w.coord.Lost(name(last), rendezvous.Killed)) })
	})
	if err := w.drain(&w.times.Ended); err != nil {
		return fmt.Errorf("the end after a death: %w", err)
	}
	w.times.Known -= begun
	w.times.Ended -= begun
	return nil
}

// carryOut does what the state machines of launcher i want.
func (w *world) carryOut(i int, effects []rendezvous.Effect) {
	l := w.launchers[i]
	for _, e := range effects {
		switch e := e.(type) {
		case rendezvous.Send:
			w.send(i, e)
		case rendezvous.SetTimer:
			w.after(e.After, func() { w.expire(i, e.Timer) })
		case rendezvous.StartWorkers:
			w.carryOut(i, l.node.Started(0, 1000+i))
			w.count(&w.working, &w.times.Joined)
		case rendezvous.TakeFlight:
			w.carryOut(i, l.node.Flown(e, nil))
		case rendezvous.Signal:
			w.after(0, func() {
				w.carryOut(i, l.node.Exited(0, rendezvous.Exit{Signal: "SIGTERM", SignalNumber: e.Number}))
			})
		case rendezvous.Finish:
			w.work(i, w.costs.End+time.Duration(len(w.launchers)-1)*w.costs.EndPeer, func() {
				l.over = true
				w.count(&w.ended, &w.times.Ended)
			})
		}
	}
}

// count counts a launcher; at is now when it is the last one.
func (w *world) count(n *int, at *time.Duration) {
	if *n++; *n == len(w.launchers) {
		*at = w.now
	}
}

// send has a message written, carried and taken.
func (w *world) send(from int, e rendezvous.Send) {
	to := w.byName[e.To] // "" is the coordinator: 0
	bytes, known, err := w.size(e.Msg)
	if err != nil {
		w.err = err
		return
	}
	if w.launchers[from].over || w.launchers[to].over {
		return
	}
	w.times.Bytes, w.times.Sent = max(w.times.Bytes, bytes), w.times.Sent+float64(bytes)
	if from == to {
		w.after(0, func() { w.receive(to, name(from), e) })
		return
	}
	first, carry, take := w.costs.Message, time.Duration(0), w.costs.Message
	if len(e.Msg.Nodes) > 0 {
		carry, take = per(bytes, w.costs.Carry), take+per(bytes, w.costs.Carry+w.costs.Decode)
		if !known {
			first += per(bytes, w.costs.Encode)
		}
	}
	w.work(from, first, func() {
		w.aside(from, carry, func() {
			w.after(w.travel(from, to, bytes), func() {
				w.work(to, take, func() { w.receive(to, name(from), e) })
			})
		})
	})
}

func per(bytes int, ns float64) time.Duration { return time.Duration(float64(bytes) * ns) }

// travel is how long a message that leaves now is on its way.
func (w *world) travel(from, to, bytes int) time.Duration {
	m := w.launchers[from].machine
	if w.site.Bandwidth == 0 || m == w.launchers[to].machine {
		return w.costs.Latency
	}
	m.out = max(m.out, w.now) + time.Duration(float64(bytes)/w.site.Bandwidth*1e9)
	return m.out - w.now + w.costs.Latency
}

func (w *world) receive(to int, from string, e rendezvous.Send) {
	l := w.launchers[to]
	switch {
	case l.over:
	case e.To == "":
		w.carryOut(to, w.coord.Receive(from, e.Msg))
	default:
		if e.Msg.Kind == rendezvous.KindAbort && !l.knows {
			l.knows = true
			w.count(&w.knowing, &w.times.Known)
		}
		w.carryOut(to, l.node.Receive(e.Msg))
	}
}

// expire lets a timer run out, of whichever machine has set it: the other ignores it.
func (w *world) expire(i int, t rendezvous.Timer) {
	if w.launchers[i].over {
		return
	}
	w.carryOut(i, w.launchers[i].node.Expired(t))
	if i == 0 {
		w.carryOut(i, w.coord.Expired(t))
	}
}

// size is how many bytes a message has on the wire, and whether that was known.
func (w *world) size(m rendezvous.Message) (n int, known bool, err error) {
	key := sized{kind: m.Kind}
	if len(m.Nodes) > 0 {
		key.nodes = &m.Nodes[0]
	}
	if n, known := w.sizes[key]; known {
		return n, true, nil
	}
	b, err := rendezvous.Encode(m)
	w.sizes[key] = len(b)
	return len(b), false, err
}

// work has launcher i compute for so long, when it has done what it had to do before,
// and then go on.
func (w *world) work(i int, cost time.Duration, then func()) {
	l := w.launchers[i]
	l.queue = append(l.queue, task{cost, then})
	if len(l.queue) == 1 {
		w.next(l)
	}
}

// next does the first thing of a launcher's queue, and then the others.
func (w *world) next(l *launcher) {
	first := l.queue[0]
	w.compute(l.machine, task{first.cost, func() {
		first.then()
		if l.queue = l.queue[1:]; len(l.queue) > 0 {
			w.next(l)
		}
	}})
}

// aside has launcher i do something beside the rest.
func (w *world) aside(i int, cost time.Duration, then func()) {
	w.compute(w.launchers[i].machine, task{cost, then})
}

// compute has a processor do a task, once one is idle.
func (w *world) compute(m *machine, t task) {
	if m.idle == 0 {
		m.waiting = append(m.waiting, t)
		return
	}
	m.idle--
	w.after(t.cost, func() {
		m.idle++
		if len(m.waiting) > 0 {
			first := m.waiting[0]
			m.waiting = m.waiting[1:]
			w.compute(m, first)
		}
		t.then()
	})
}

// after has something happen in so long.
func (w *world) after(d time.Duration, do func()) {
	w.made++
	heap.Push(&w.queue, event{w.now + d, w.made, do})
}

// drain lets time pass until something has happened, at a time above 0.
func (w *world) drain(happened *time.Duration) error {
	for len(w.queue) > 0 && w.err == nil && *happened == 0 {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	if w.err == nil && *happened == 0 {
		return errors.New("it never comes")
	}
	return w.err
}
