package rendezvous

import (
	"fmt"
	"slices"
)

// How the coordinator gathers what the ranks of all nodes exchange.

// exchange takes the blobs of the ranks of a node.
func (c *Coordinator) exchange(from string, m Message) {
	if c.phase != running || m.Seq != c.seq {
		return // a duplicate of one that is complete
	}
	c.parts[from] = m
	total := 0
	for _, n := range c.nodes {
		p, ok := c.parts[n.Name]
		if ok && p.Name != m.Name {
			a, b := c.index(from), c.index(n.Name)
			c.abort(&Cause{Kind: CauseNode, Rank: -1, Node: a, Host: c.nodes[a].Host, Text: disagree(Base(c.nodes, a), m.Name, Base(c.nodes, b), p.Name, m.Seq)})
			return
		}
		for _, blob := range p.Blobs {
			total += len(blob)
		}
	}
	if total > MaxExchange {
		i := c.index(from)
		c.abort(&Cause{Kind: CauseNode, Rank: -1, Node: i, Host: c.nodes[i].Host, Text: tooLarge(m.Name)})
		return
	}
	c.completeExchange()
}

// completeExchange answers the exchange under way if every node has given its
// part, and aborts if one that has not never will.
func (c *Coordinator) completeExchange() {
	var blobs [][]byte
	var name string
	for _, n := range c.nodes {
		p, ok := c.parts[n.Name]
		if !ok {
			c.checkDone()
			return
		}
		name, blobs = p.Name, append(blobs, p.Blobs...)
	}
	m := Message{Kind: KindGathered, Seq: c.seq, Name: name, Blobs: blobs}
	c.seq++
	clear(c.parts)
	c.sendAll(m)
}

// checkDone aborts if a node waits in an exchange for one that has ended.
func (c *Coordinator) checkDone() {
	waiting := slices.IndexFunc(c.nodes, func(n NodeInfo) bool { _, waits := c.parts[n.Name]; return waits })
	gone := slices.IndexFunc(c.nodes, func(n NodeInfo) bool { _, ended := c.done[n.Name]; return ended })
	if waiting < 0 || gone < 0 || c.cutShort() { // that is why they ended
		return
	}
	exchange := c.parts[c.nodes[waiting].Name].Name
	c.abort(&Cause{Kind: CauseNode, Rank: -1, Node: gone, Host: c.nodes[gone].Host, Text: fmt.Sprintf("its ranks ended while others wait for them in exchange %q", exchange)})
}

func tooLarge(name string) string {
	return fmt.Sprintf("exchange %q is larger than %d bytes over all ranks", name, MaxExchange)
}

func disagree(rankA int, nameA string, rankB int, nameB string, seq uint64) string {
	return fmt.Sprintf("rank %d is in exchange %q while rank %d is in exchange %q (number %d): all ranks must make the same exchanges in the same order", rankA, nameA, rankB, nameB, seq)
}
