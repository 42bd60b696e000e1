package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/schedule"
)

// Run plays so many steps, each of which a rank begins when it has ended the one
// before. The draws of a step are named by seed, the step and the rank. An error says
// what is wrong with the arguments, or is ctx's.
func Run(ctx context.Context, c Cluster, s Step, n Noise, steps int, seed uint64) (Result, error) {
	return run(ctx, c, s, n, steps, seed, tariffOf(c.Costs), tariffOf(c.Costs))
}

// run is Run where collectives that are exchanged whole cost something else.
func run(ctx context.Context, c Cluster, s Step, n Noise, steps int, seed uint64, small, large tariff) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	if steps < 1 {
		return Result{}, fmt.Errorf("simulate: %d steps, expected at least 1", steps)
	}
	for _, r := range n.Ratios {
		if !(r > 0 && r < 1e9) {
			return Result{}, fmt.Errorf("simulate: a ratio of the noise is %v, expected more than 0", r)
		}
	}
	all, err := sidesOf(c, s, n, seed, small, large)
	if err != nil {
		return Result{}, err
	}
	p := all[0]
	if p.group.crowdedBy(len(all)) {
		if err := newCrowd(all, c.Wake, c.Delay).run(ctx, steps); err != nil {
			return Result{}, err
		}
		return together(all), nil
	}
	for i := range steps {
		if err := p.step(ctx, i); err != nil {
			return Result{}, err
		}
	}
	return p.result(), nil
}

func (c Cluster) check() error {
	if len(c.Ranks) == 0 || slices.Min(c.Ranks) < 1 {
		return fmt.Errorf("simulate: ranks on hosts are %v, expected at least one host and a rank on each", c.Ranks)
	}
	const most = 1e9
	if !(c.Others >= 0 && c.Others < most) {
		return fmt.Errorf("simulate: others take %v processors, expected 0 to %g", c.Others, most)
	}
	if !(c.Wake >= 0 && c.Wake < most && c.Delay >= 0 && c.Delay < most) {
		return fmt.Errorf("simulate: after a wait a rank needs %v us of a processor and is %v us late, expected 0 to %g of both", c.Wake, c.Delay, most)
	}
	if c.Cores < 0 || c.Together < 0 || c.Beside < 0 {
		return fmt.Errorf("simulate: %d cores, %d hosts on a machine and %d groups, expected 0 or more", c.Cores, c.Together, c.Beside)
	}
	return nil
}

// Collective is the time in microseconds of one collective that all ranks start at the
// same time, as rank 0 sees it.
func Collective(c Cluster, kind collective.Kind, bytes int) (float64, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	k := planKey{kind, bytes}
	if !k.valid() {
		return 0, fmt.Errorf("simulate: %v of %d bytes, expected a collective of 0 bytes or more", kind, bytes)
	}
	g := newGroup(c)
	g.play(k.whole(g.size), tariffOf(c.Costs))
	return g.lead.clock[0], nil
}

// player is a simulation under way.
type player struct {
	*program
	group        *group
	small, large tariff
	ratios       []float64
	seed         uint64

	host   []int     // of each rank
	leads  []bool    // of its host
	ratio  []float64 // of each rank, in this step
	clock  []float64 // of each rank
	window []int     // of each rank: the first collective of the step that may delay it
	played int       // collectives of the step
	runs   [][]span  // by collective and rank
	last   []float64 // by collective: when the last rank started it

	ended float64 // when the last rank ended its step
	steps []split

	processor float64 // in a crowd, what all its ranks have had of one
	woken     int     // in a crowd, after how many waits a rank was woken
}

// span is when a collective ran on a rank, and what of it was a processor's work; in a
// crowd, also what a processor does beside links.
type span struct{ begin, end, work, beside float64 }

// split is a step's time, and what it was for, summed over ranks.
type split struct {
	us, compute, slowest float64
	exposed              []float64 // by label
	messages, bytes      int64
}

func newPlayer(c Cluster, s Step, n Noise, seed uint64) (*player, error) {
	g := newGroup(c)
	prog, err := compile(s, g.size)
	if err != nil {
		return nil, err
	}
	p := &player{program: prog, group: g, ratios: n.Ratios, seed: seed, ratio: make([]float64, g.size), clock: make([]float64, g.size),
		window: make([]int, g.size), last: make([]float64, len(prog.collectives)), runs: make([][]span, len(prog.collectives))}
	for k := range p.runs {
		p.runs[k] = make([]span, g.size)
	}
	for h, ranks := range c.Ranks {
		for l := range ranks {
			p.host, p.leads = append(p.host, h), append(p.leads, l == 0)
		}
	}
	return p, nil
}

func (p *player) step(ctx context.Context, number int) error {
	for r := range p.ratio {
		p.ratio[r], p.window[r] = p.draw(number, r), 0
	}
	p.steps = append(p.steps, split{exposed: make([]float64, len(p.labels))})
	sum, g := &p.steps[number], p.group
	g.messages, g.bytes, p.played = 0, 0, 0
	for k, part := range p.parts {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		for r := range p.clock {
			for _, e := range part {
				if e.Kind == Compute {
					sum.compute += p.compute(r, e.US*p.ratio[r]*g.stretch[p.host[r]])
				} else {
					p.wait(r, e.Collective, sum)
				}
			}
		}
		if k < len(p.collectives) {
			p.start(k, p.clock)
			p.played++
		}
	}
	p.total(sum)
	return nil
}

// total is what a step took, when all ranks have ended it.
func (p *player) total(sum *split) {
	g, end := p.group, slices.Max(p.clock)
	sum.us, p.ended = end-p.ended, end
	sum.messages, sum.bytes = g.messages, g.bytes
}

// draw is the noise of a rank's step.
func (p *player) draw(step, rank int) float64 {
	n := len(p.ratios)
	if n == 0 {
		return 1
	}
	draws := rand.NewPCG(mix(p.seed), mix(uint64(step)<<32|uint64(rank)))
	return p.ratios[rand.New(draws).IntN(n)]
}

// mix scatters neighbouring names (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// compute keeps rank r busy for us, and is how long that takes: what a shared processor
// does for a collective meanwhile, evenly while that runs, is done before.
func (p *player) compute(r int, us float64) float64 {
	begin := p.clock[r]
	now := begin
	if p.group.shared[p.host[r]] {
		for w := p.window[r]; w < p.played && us > 0; w++ {
			s := p.runs[w][r]
			if s.end <= now {
				p.window[r] = w + 1
				continue
			}
			before := min(us, max(0, s.begin-now))
			now, us = now+before, us-before
			free := max(0, 1-s.work/(s.end-s.begin)) // of the processor, while s runs
			if us <= (s.end-now)*free {
				if us > 0 {
					now, us = now+us/free, 0
				}
				break
			}
			us -= (s.end - now) * free
			now = s.end
		}
	}
	p.clock[r] = now + us
	return p.clock[r] - begin
}

// wait has rank r wait for collective k.
func (p *player) wait(r, k int, sum *split) {
	now, end := p.clock[r], p.runs[k][r].end
	if end <= now {
		return
	}
	slow := min(end, max(now, p.last[k]))
	sum.slowest += slow - now
	sum.exposed[p.label[k]] += end - slow
	p.clock[r] = end
}

// start plays collective k, which ranks have started at these times. Every rank begins it
// when it has started it and the one before is over.
func (p *player) start(k int, started []float64) {
	g := p.group
	for h := range g.lead.clock {
		g.lead.clock[h], g.rest.clock[h] = 0, 0
	}
	p.last[k] = 0
	for r, now := range started {
		p.last[k] = max(p.last[k], now)
		if k > 0 {
			now = max(now, p.runs[k-1][r].end)
		}
		p.runs[k][r].begin = now
		begins := &g.actorsOf(p.leads[r]).clock[p.host[r]]
		*begins = max(*begins, now)
	}
	t := p.large
	if p.collectives[k].bytes <= schedule.Doubles {
		t = p.small
	}
	g.play(p.collectives[k], t)
	for r, h := range p.host {
		a := g.actorsOf(p.leads[r])
		p.runs[k][r].end, p.runs[k][r].work, p.runs[k][r].beside = max(p.runs[k][r].begin, a.clock[h]), a.work[h], a.beside[h]
	}
}

func (g *group) actorsOf(leads bool) *actors {
	if leads {
		return &g.lead
	}
	return &g.rest
}

// result is that of all steps.
func (p *player) result() Result {
	r := Result{}
	for _, s := range p.steps {
		r.Steps = append(r.Steps, s.us)
	}
	sorted := slices.Sorted(slices.Values(r.Steps))
	n := len(sorted)
	r.P10, r.Median, r.P90 = sorted[n/10], sorted[(n-1)/2], sorted[n-1-n/10]
	median := p.steps[slices.Index(r.Steps, r.Median)]
	ranks := float64(len(p.clock))
	r.Compute, r.Slowest = median.compute/ranks, median.slowest/ranks
	for i, us := range median.exposed {
		r.Exposed = append(r.Exposed, Exposed{p.labels[i], us / ranks})
	}
	r.Messages, r.Bytes = median.messages, median.bytes
	all := ranks * float64(n)
	r.Processor, r.Woken = p.processor/all, float64(p.woken)/all
	return r
}

// A Cost is something that Without removes.
type Cost uint8

const (
	// SmallLatency is what a round and a message take before their bytes, of
	// collectives that are small (up to 64 KiB, as leaders exchange whole).
	SmallLatency Cost = iota + 1
	// LargeLatency is that of all others.
	LargeLatency
	// Bandwidth is the time of bytes between hosts.
	Bandwidth
	// Memory is the time of bytes that the ranks of a host copy.
	Memory
	// Reduction is the time of adding.
	Reduction
	// Stragglers are the differences between ranks and steps.
	Stragglers
)

// Costs are all of them.
var Costs = []Cost{SmallLatency, LargeLatency, Bandwidth, Memory, Reduction, Stragglers}

// String is what people call it.
func (c Cost) String() string {
	names := map[Cost]string{SmallLatency: "latency of small collectives", LargeLatency: "latency of large collectives",
		Bandwidth: "bandwidth between hosts", Memory: "copies within a host", Reduction: "reduction", Stragglers: "stragglers"}
	if name, ok := names[c]; ok {
		return name
	}
	return fmt.Sprintf("cost %d", uint8(c))
}

// Without is Run where one cost is nothing: what would removing it give?
func Without(ctx context.Context, without Cost, c Cluster, s Step, n Noise, steps int, seed uint64) (Result, error) {
	small, large := c.Costs, c.Costs
	switch without {
	case SmallLatency:
		small = noLatency(small)
	case LargeLatency:
		large = noLatency(large)
	case Bandwidth:
		for _, c := range []*cost.Costs{&small.Between, &large.Between} {
			c.PerByte, c.BusyPerByte = cost.Interval{}, cost.Interval{}
		}
	case Memory:
		small.Within.PerByte, large.Within.PerByte = cost.Interval{}, cost.Interval{}
	case Reduction:
		small.Within.Reduce, large.Within.Reduce = cost.Interval{}, cost.Interval{}
		small.Between.Reduce, large.Between.Reduce = cost.Interval{}, cost.Interval{}
	case Stragglers:
		n = Noise{}
	default:
		return Result{}, fmt.Errorf("simulate: without %v, expected one of %v", without, Costs)
	}
	return run(ctx, c, s, n, steps, seed, tariffOf(small), tariffOf(large))
}

func noLatency(m cost.Model) cost.Model {
	for _, c := range []*cost.Costs{&m.Within, &m.Between} {
		c.Latency, c.Message, c.Busy = cost.Interval{}, cost.Interval{}, cost.Interval{}
	}
	return m
}
