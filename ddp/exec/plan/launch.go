package plan

import "slices"

// Launch is what a device can do at once: chains of steps (see Chains), beside each
// other, since none depends on another.
type Launch struct {
	Chains [][]int // the steps of each, in order
	Deps   []int   // earlier launches that must be complete before it begins; none follows from others
	// Alike says that the chains are steps which the device does in one way (see
	// Together.Alike), and not small ones of any kind.
	Alike bool
}

// Together says which steps share a launch.
type Together struct {
	// Chain is how many points a fused step has at most to be done after others by
	// one block of threads.
	Chain int
	// Batch is how many points a fused step has at most to be done beside others:
	// larger ones fill the device alone.
	Batch int
	// Most is how many steps a launch has at most, if it has more than one chain;
	// 0 is any number.
	Most int
	// Can says whether a fused step can be after or beside others at all; nil is that
	// all can.
	Can func(step int) bool
	// Alike is how the device does a step that would otherwise be alone: steps of equal
	// names that can begin at the same time share a launch. One of the name "" is alone;
	// nil is that all are.
	Alike func(step int) string
	// Patience is for how many launches a step is kept for others to be beside it, if a
	// collective depends on it; 0 is any number.
	Patience int
}

// can says whether step i can share a launch, with so many points at most.
func (o *Together) can(p *Plan, i, points int) bool {
	return p.short(i, points) && (o.Can == nil || o.Can(i))
}

// Launches are the steps of an allocated plan in launches, in an order that Deps
// allows and that suits one stream: what fills the device alone begins as soon as it
// can; then steps that are alike, all of a name at once; the small rest is kept until
// nothing else can begin, and then all that can is one launch. So an optimiser's steps
// for many weights, or a statistic of many layers, are one launch instead of one each; the
// price is that some begin later than they could. What a collective depends on is kept
// for so many launches at most. A Wait comes when nothing but Waits can begin.
func (p *Plan) Launches(o Together) []Launch {
	chains, deps := p.chains(func(i int) bool { return o.can(p, i, o.Chain) })
	n := len(chains)
	l := &launching{p: p, o: o, chains: chains, missing: make([]int, n), users: make([][]int, n), of: make([]int, n), since: make([]int, n)}
	for c, list := range deps {
		l.missing[c] = len(list)
		for _, d := range list {
			l.users[d] = append(l.users[d], c)
		}
	}
	l.awaited = l.beforeStarts()
	for c := range chains {
		if l.missing[c] == 0 {
			l.ready(c)
		}
	}
	l.run()
	return l.finish(deps)
}

// launching is launches under construction.
type launching struct {
	p       *Plan
	o       Together
	chains  [][]int
	missing []int   // by chain: how many that it depends on are in no launch yet
	users   [][]int // by chain: those that depend on it
	of      []int   // by chain: its launch
	made    [][]int // launches, of chains
	likes   []bool  // by launch: its chains are alike
	awaited []bool  // by chain: a Start depends on it, however far
	since   []int   // by chain: how many launches there were when it could begin

	alone, small, waits []int // ready chains, first come first served
	alike               []alike
}

// alike is ready chains of one name.
type alike struct {
	name   string
	chains []int
}

// beforeStarts are the chains that a Start depends on.
func (l *launching) beforeStarts() []bool {
	before := make([]bool, len(l.chains))
	for c := range slices.Backward(l.chains) {
		for _, u := range l.users[c] {
			_, start := l.p.Steps[l.chains[u][0]].Op.(Start)
			before[c] = before[c] || start || before[u]
		}
	}
	return before
}

// ready queues a chain that can begin.
func (l *launching) ready(c int) {
	l.since[c] = len(l.made)
	_, wait := l.p.Steps[l.chains[c][0]].Op.(Wait)
	switch {
	case wait:
		l.waits = append(l.waits, c)
	case l.fits(c):
		l.small = append(l.small, c)
	default:
		l.big(c)
	}
}

// big queues a chain that is none of the small ones.
func (l *launching) big(c int) {
	name := ""
	if l.o.Alike != nil && len(l.chains[c]) == 1 {
		name = l.o.Alike(l.chains[c][0])
	}
	if name == "" {
		l.alone = append(l.alone, c)
		return
	}
	k := slices.IndexFunc(l.alike, func(a alike) bool { return a.name == name })
	if k < 0 {
		k = len(l.alike)
		l.alike = append(l.alike, alike{name: name})
	}
	l.alike[k].chains = append(l.alike[k].chains, c)
}

// fits says whether a chain may be beside others.
func (l *launching) fits(c int) bool {
	for _, i := range l.chains[c] {
		if !l.o.can(l.p, i, l.o.Batch) {
			return false
		}
	}
	return true
}

// run puts all chains into launches.
func (l *launching) run() {
	for {
		switch {
		case l.late():
			l.batch()
		case len(l.alone) > 0:
			c := l.alone[0]
			l.alone = l.alone[1:]
			l.launch(c)
		case len(l.alike) > 0:
			a := l.alike[0]
			l.alike = l.alike[1:]
			l.launch(a.chains...)
			l.likes[len(l.likes)-1] = len(a.chains) > 1
		case len(l.small) > 0:
			l.batch()
		case len(l.waits) > 0:
			c := l.waits[0]
			l.waits = l.waits[1:]
			l.launch(c)
		default:
			return
		}
	}
}

// late says whether a small chain has been kept for too long.
func (l *launching) late() bool {
	return l.o.Patience > 0 && slices.ContainsFunc(l.small, func(c int) bool { return l.awaited[c] && len(l.made)-l.since[c] >= l.o.Patience })
}

// batch makes a launch of small chains, the first ones first.
func (l *launching) batch() {
	n := l.beside()
	batch := l.small[:n]
	l.small = l.small[n:]
	l.launch(batch...)
}

// beside is how many of the small chains, at least one, fit a launch.
func (l *launching) beside() int {
	steps := 0
	for n, c := range l.small {
		steps += len(l.chains[c])
		if n > 0 && l.o.Most > 0 && steps > l.o.Most {
			return n
		}
	}
	return len(l.small)
}

// launch makes a launch of chains.
func (l *launching) launch(chains ...int) {
	for _, c := range chains {
		l.of[c] = len(l.made)
	}
	l.made, l.likes = append(l.made, chains), append(l.likes, false)
	for _, c := range chains {
		for _, u := range l.users[c] {
			if l.missing[u]--; l.missing[u] == 0 {
				l.ready(u)
			}
		}
	}
}

// finish is the launches, with what each depends on; deps is that of chains.
func (l *launching) finish(deps [][]int) []Launch {
	launches, above := make([]Launch, len(l.made)), make([]set, len(l.made))
	for n, chains := range l.made {
		var found []int
		for _, c := range chains {
			launches[n].Chains = append(launches[n].Chains, l.chains[c])
			for _, d := range deps[c] {
				found = append(found, l.of[d])
			}
		}
		launches[n].Alike = l.likes[n]
		launches[n].Deps, above[n] = direct(found, above, n)
	}
	return launches
}
