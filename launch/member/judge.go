package member

import (
	"encoding/json"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

const (
	// missed is for how many pulses a life line may be silent, see silence.
	missed = 5
	// questions is how often a silent launcher is asked, each time for
	// probeTimeout.
	questions = 3
	// witnesses is how many others are asked as well, to tell a host that is
	// gone from a network that this host has lost.
	witnesses = 8
	// lateness is how late this process may be before it no longer trusts its
	// own clock to say that others are silent.
	lateness = 100 * time.Millisecond
	// strain is how late this process may be until, for strainMemory, it takes
	// itself to be short of processor time, and with it perhaps those that it
	// judges: then it asks patience times as often before it calls one lost, and as
	// many times that as it was late by multiples of strain, up to mostPatience.
	strain       = 25 * time.Millisecond
	strainMemory = 2 * time.Second
	patience     = 3
	mostPatience = 15
	// formingPatience is the same until the job is complete: all launchers are
	// started at once, and where many share a machine that alone keeps it busy for
	// seconds. Nothing is lost meanwhile but time.
	formingPatience = 30
	// mutePatience is the same, at least, for a launcher that says nothing while its
	// host's kernel takes what is sent to it: it gets no processor time, which passes,
	// or it is stopped. It is lost 1.4 s after it spoke last.
	mutePatience = 3
)

// Vouch says who knows signs of life that this package does not see: heard tells
// whether data of a launcher's ranks have arrived lately. It may be called from
// any goroutine and must not block.
func (m *Member) Vouch(heard func(name string) bool) { m.vouch.Store(&heard) }

// Formed says that the job is complete, of so many launchers: whoever is silent from
// now on is lost sooner.
func (m *Member) Formed(launchers int) { m.formed.Store(int32(launchers)) }

// others is how many other launchers there are, of whom gossip knows so many. The coordinator
// sees which of them are left, and what gossip thinks does not count: it takes half a second to
// give up one that was killed, and on a host that was cut off it has given up everybody by the
// time the judge has asked often enough. The others are told at the next Formed how many the
// job has; of spare ones, and before there is a job, they know by gossip.
func (m *Member) others(known int) int {
	if m.cfg.Coordinator {
		return m.lifeLines()
	}
	return max(known, int(m.formed.Load())-1)
}

// vouched says that data of that launcher's ranks have arrived lately.
func (m *Member) vouched(name string) bool {
	f := m.vouch.Load()
	return f != nil && (*f)(name)
}

// Hint sends msg to the launcher called to, "" for the coordinator, in a packet
// that may be lost.
func (m *Member) Hint(to string, msg rendezvous.Message) {
	if to == "" {
		m.mu.Lock()
		to = m.coord
		m.mu.Unlock()
	}
	p, err := m.packet(msg)
	if err != nil {
		m.cfg.Log.Error("a message cannot be sent", "kind", msg.Kind, "error", err)
		return
	}
	m.send(to, p)
}

// send sends p to a launcher, unless it is lost on the way. It goes to where that
// was last known to be, also if gossip thinks it dead.
func (m *Member) send(to string, p packet) {
	n := m.place(to)
	if n == nil {
		return
	}
	frame, err := json.Marshal(p)
	if err == nil {
		err = m.list.SendBestEffort(n, frame)
	}
	if err != nil {
		m.cfg.Log.Debug("a packet was not sent", "to", to, "error", err)
	}
}

// place is where a launcher is, nil if that is not known.
func (m *Member) place(name string) *memberlist.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.places[name]
}

// judge looks after the launcher called name, until it has left or is lost. It
// is lost when its life line is silent, it does not answer, and no data of its
// ranks arrive: a saturated network delays what launchers say by many seconds.
// If nobody else answers either, it is this host that is cut off.
func (m *Member) judge(name string, l *life) {
	var own shortage
	for expected := time.Now(); ; {
		expected = expected.Add(m.beat() / 2)
		select {
		case <-m.ctx.Done():
			return
		case <-time.After(time.Until(expected)):
		}
		own.late(time.Since(expected), time.Now())
		m.mu.Lock()
		if late := time.Since(expected); late > lateness { // this process stood still, not the others
			l.heard, expected = l.heard.Add(late), time.Now()
		}
		quiet, over := time.Since(l.heard), l.left || l.lost
		l.judged = !over // whoever hears of it from now on begins anew
		m.mu.Unlock()
		switch {
		case over:
			return
		case quiet < m.silence() || m.vouched(name):
			continue
		}
		lives, known := m.askOften(name, l, &own)
		expected = time.Now()
		m.cfg.Log.Debug("a life line is silent", "name", name, "for", quiet, "lives", lives)
		in := rendezvous.Inbound{From: name, Lost: true}
		switch {
		case lives:
		case m.acknowledges(l):
			in.How = rendezvous.Mute
			m.report(l, in)
		case m.others(known) > 1 && !m.anybody(name, l):
			in.Alone = true
			m.alone.Store(true)
			m.report(l, in)
		default:
			m.report(l, in)
		}
	}
}

// rounds is how often a silent launcher is to be asked.
func (m *Member) rounds(l *life, own *shortage) int {
	switch {
	case m.formed.Load() == 0:
		return formingPatience
	case m.acknowledges(l):
		return max(own.rounds(), mutePatience)
	}
	return own.rounds()
}

// shortage is how short of processor time this process is: how late it was at worst in
// this strainMemory, and in the one before.
type shortage struct {
	worst, before time.Duration
	since         time.Time
}

// late notes that something came so late.
func (s *shortage) late(by time.Duration, now time.Time) {
	switch old := now.Sub(s.since); {
	case old >= 2*strainMemory:
		s.worst, s.before, s.since = 0, 0, now
	case old >= strainMemory:
		s.worst, s.before, s.since = 0, s.worst, now
	}
	s.worst = max(s.worst, by)
}

// rounds is how often a silent launcher is to be asked.
func (s *shortage) rounds() int {
	worst := max(s.worst, s.before)
	if worst <= strain {
		return 1
	}
	return min(mostPatience, patience*int(worst/strain))
}

// askOften asks as ask does, until there is a sign of life or it has been asked often
// enough, which may change meanwhile.
func (m *Member) askOften(name string, l *life, own *shortage) (lives bool, others int) {
	for asks := 0; asks < m.rounds(l, own); {
		asked := time.Now()
		answered, known := m.ask(name)
		others = known
		if speaks, _ := m.lifeOf(name); answered || speaks || m.vouched(name) || m.ctx.Err() != nil {
			return true, others
		}
		if now := time.Now(); now.Sub(asked) > 2*questions*probeTimeout {
			own.late(lateness, now) // this process stood still: the silence means nothing
			continue
		}
		asks++
	}
	return false, others
}

// report tells of a loss, once, and of nobody who has left.
func (m *Member) report(l *life, in rendezvous.Inbound) {
	m.mu.Lock()
	known := l.lost || l.left
	l.lost = true
	m.mu.Unlock()
	if !known {
		m.lose(in)
	}
}

// lifeOf says whether the life line of a launcher is not silent, and whether it
// has been found lost.
func (m *Member) lifeOf(name string) (speaks, lost bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lives[name]
	if l == nil {
		return false, false
	}
	return !l.left && time.Since(l.heard) < m.silence(), l.lost
}

// ask asks a silent launcher whether it is there, also if gossip has given it up, and at
// the same time the others that gossip knows, whose answers anybody tells of. Others is
// how many there are, the silent one included.
func (m *Member) ask(name string) (answered bool, others int) {
	names := []string{name}
	for _, n := range m.list.Members() {
		if n.Name != m.cfg.Name && n.Name != name {
			names = append(names, n.Name)
		}
	}
	var all sync.WaitGroup
	for i, n := range names[:min(len(names), 1+witnesses)] {
		all.Go(func() {
			if !m.reach(n) {
				return
			}
			m.mu.Lock()
			m.answered[n] = time.Now()
			m.mu.Unlock()
			if i == 0 {
				answered = true
			}
		})
	}
	all.Wait()
	return answered, len(names)
}

// reach asks a launcher whether it is there. Its life line may stand before gossip knows
// where it is: then it gets the time of its answers, in which that may become known, or a
// judge would have asked often enough within microseconds. So does one to which there is
// no way any more: what is sent to it fails at once where this host's interface is down.
func (m *Member) reach(name string) bool {
	n := m.place(name)
	if n == nil {
		m.pause(questions * probeTimeout)
		return false
	}
	addr, err := net.ResolveUDPAddr("udp", net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))) // see transport.zoned
	if err != nil {
		return false
	}
	for range questions {
		asked := time.Now()
		if _, err := m.list.Ping(n.Name, addr); err == nil {
			return true
		}
		m.pause(probeTimeout - time.Since(asked))
	}
	return false
}

// pause waits for so long, or until Close.
func (m *Member) pause(d time.Duration) {
	select {
	case <-m.ctx.Done():
	case <-time.After(d):
	}
}

// anybody says whether any launcher but the silent one, which is called name, has shown
// a sign of life lately, or has left since that was last heard: who was quicker to see it
// lost has ended by the time that a host short of processor time has asked often enough.
func (m *Member) anybody(name string, silent *life) bool {
	m.mu.Lock()
	left := m.parted.After(silent.spoke)
	m.mu.Unlock()
	if left {
		return true
	}
	for _, n := range m.heardOf() {
		if n.name == name {
			continue
		}
		if time.Since(n.at) < m.silence() || m.vouched(n.name) {
			return true
		}
	}
	return false
}

type sign struct {
	name string
	at   time.Time
}

// heardOf is when the other launchers have last shown a sign of life.
func (m *Member) heardOf() []sign {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []sign
	for name, at := range m.answered {
		all = append(all, sign{name, at})
	}
	for name, l := range m.lives {
		if !l.left {
			all = append(all, sign{name, l.heard})
		}
	}
	return all
}

// lifeLines is how many launchers there are that have a life line to here, and are not
// known to be lost; memberlist may think some of them dead.
func (m *Member) lifeLines() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, l := range m.lives {
		if !l.left && !l.lost {
			n++
		}
	}
	return n
}
