package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"ebtrain/launch/forecast"
	"ebtrain/launch/member"
	"ebtrain/launch/rendezvous"
)

// fitted are the crowds to which what a launcher costs is fitted; others are forecast.
var fitted = []int{8, 32}

// fittedTimes is how often each of them is made: of two numbers whose difference counts, one that
// others disturbed is a cost that grows with the crowd.
const fittedTimes = 5

// The machines of a forecast beyond this one: each launcher has one, as fast as this.
const (
	theirProcessors = 8
	theirLatency    = 50 * time.Microsecond
	theirBandwidth  = 1.25e9 // 10 Gbit/s
	mostLaunchers   = 16384
)

// foretell is the tables, to so many launchers, where messages have the costs c and this machine so many
// processors: crowds forecast from those that were fitted beside what was measured, and what is forecast of many
// machines.
func foretell(c forecast.Costs, processors int, measured map[int]crowdSeen, sizes []int, most int) (string, error) {
	c = launcherCosts(c, measured[fitted[0]], measured[fitted[1]])
	var b strings.Builder
	fmt.Fprintf(&b, "Forecast (package forecast) beside measured. Costs, in processor time of this machine: a message %v at each end, a list of launchers %.2f ns a byte to encode, %.2f to decode and %.2f at each end to carry, %v on its way; "+
		"fitted to crowds of %d and %d: start of a launcher and its rank %v and %v for each other one, at the coordinator %v for each launcher, end %v and %v for each other one. "+
		"Share: of the processors, what other programs left while the crowd joined, and while it ended; the forecast has no more.\n\n",
		c.Message, c.Encode, c.Decode, c.Carry, c.Latency, fitted[0], fitted[1], c.Start.Round(10*time.Microsecond), c.Peer, c.Join, c.End.Round(10*time.Microsecond), c.EndPeer)
	b.WriteString("| launchers on this machine | share | all ranks run: forecast | measured | share | processor time of each | after a death all ended: forecast | measured |\n|---|---|---|---|---|---|---|---|\n")
	for _, n := range append(fitted[:len(fitted):len(fitted)], sizes...) {
		m := measured[n]
		t, err := forecast.Run(c, forecast.Site{Launchers: n, OneMachine: true, Processors: processors, Share: m.share, EndShare: m.endShare})
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %d | %.2f | %.2f | %.2f | %.2f | %v | %.2f | %.2f |\n", n, m.share, t.Joined.Seconds(), m.Joined.Seconds(), m.endShare, m.end.Round(100*time.Microsecond), t.Ended.Seconds(), m.Ended.Seconds())
	}
	fmt.Fprintf(&b, "\nThe same costs, each launcher on a machine of its own with %d processors, %v between them and %.3g Gbit/s:\n\n", theirProcessors, theirLatency, theirBandwidth*8/1e9)
	b.WriteString("| launchers | all ranks run | a death is known to all | all ended | largest message | the coordinator's traffic |\n|---|---|---|---|---|---|\n")
	c.Latency = theirLatency
	for n := 16; n <= most; n *= 4 {
		t, err := forecast.Run(c, forecast.Site{Launchers: n, Processors: theirProcessors, Bandwidth: theirBandwidth})
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %d | %.2f | %.3f | %.2f | %.3f MB | %.1f MB |\n", n, t.Joined.Seconds(), t.Known.Seconds(), t.Ended.Seconds(), float64(t.Bytes)/1e6, t.Sent/1e6)
	}
	return b.String(), nil
}

// launcherCosts completes c: lines through what launchers of two crowds took.
func launcherCosts(c forecast.Costs, a, b crowdSeen) forecast.Costs {
	c.Start, c.Peer = line(a, b, func(s crowdSeen) time.Duration { return s.start })
	c.End, c.EndPeer = line(a, b, func(s crowdSeen) time.Duration { return s.end })
	for _, s := range []crowdSeen{a, b} {
		others := time.Duration(s.launchers - 1)
		c.Join += max(0, (s.coord-s.start)/others) / 2
	}
	return c
}

// line is what there is without another launcher, and for each, neither below 0.
func line(a, b crowdSeen, of func(crowdSeen) time.Duration) (base, each time.Duration) {
	each = max(0, (of(b)-of(a))/time.Duration(b.launchers-a.launchers))
	return max(0, of(a)-time.Duration(a.launchers-1)*each), each
}

// messageCosts measures messages between two members in this process: the processor
// time of one, of its bytes, and the rest of its way.
func messageCosts() (c forecast.Costs, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	open := func(name, endpoint string, coordinator bool) (*member.Member, error) {
		return member.Open(ctx, member.Config{Name: name, Coordinator: coordinator, Endpoint: endpoint, Key: make([]byte, 32), Label: "chaos", Nodes: 2, Wait: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})
	}
	coord, err := open("coordinator", "127.0.0.1:0", true)
	if err != nil {
		return c, err
	}
	defer func() { _ = coord.Close() }() // nothing is left to be said
	other, err := open("other", fmt.Sprintf("127.0.0.1:%d", coord.Port()), false)
	if err != nil {
		return c, err
	}
	defer func() { _ = other.Close() }()

	short := rendezvous.Message{Kind: rendezvous.KindAck}
	nodes := make([]rendezvous.NodeInfo, 1000)
	for i := range nodes {
		nodes[i] = forecast.Info(i, len(nodes), -1)
	}
	long := rendezvous.Message{Kind: rendezvous.KindAssign, Nodes: nodes}
	bytes, err := codingCosts(&c, long)
	if err != nil {
		return c, err
	}
	const shorts, longs = 4000, 100
	quick, each, err := flow(other, coord, short, shorts)
	if err != nil {
		return c, err
	}
	_, whole, err := flow(other, coord, long, longs)
	if err != nil {
		return c, err
	}
	c.Message = each / 2 // at each of its ends
	c.Carry = max(0, (float64(whole-each)/float64(bytes)-c.Encode-c.Decode)/2)
	c.Latency = max(0, quick-each)
	return c, nil
}

// codingCosts fills in what m's bytes take to be encoded and decoded, and is how many
// they are.
func codingCosts(c *forecast.Costs, m rendezvous.Message) (bytes int, err error) {
	const times = 100
	var text []byte
	var at [3]time.Duration
	for i, do := range []func() error{
		func() error { return nil },
		func() (err error) { text, err = rendezvous.Encode(m); return err },
		func() error { _, err := rendezvous.Decode(text); return err },
	} {
		for range times {
			if err := do(); err != nil {
				return 0, err
			}
		}
		if at[i], err = ownTime(); err != nil {
			return 0, err
		}
	}
	c.Encode = float64(at[1]-at[0]) / times / float64(len(text))
	c.Decode = float64(at[2]-at[1]) / times / float64(len(text))
	return len(text), nil
}

// flow sends so many messages, one after another: the shortest time that one was on its
// way, and the processor time of each, at both ends.
func flow(from, to *member.Member, m rendezvous.Message, count int) (quickest, each time.Duration, err error) {
	quickest = time.Hour
	before, err := ownTime()
	if err != nil {
		return 0, 0, err
	}
	for range count {
		sent := time.Now()
		from.Send("", m)
		select {
		case in := <-to.Inbox():
			if in.Lost || in.Msg.Kind != m.Kind {
				return 0, 0, fmt.Errorf("a message of kind %q came where %q was sent", in.Msg.Kind, m.Kind)
			}
		case <-time.After(10 * time.Second):
			return 0, 0, fmt.Errorf("a message of kind %q does not come", m.Kind)
		}
		quickest = min(quickest, time.Since(sent))
	}
	after, err := ownTime()
	return quickest, (after - before) / time.Duration(count), err
}

// ownTime is the processor time that this process has had.
func ownTime() (time.Duration, error) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0, err
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), nil
}
