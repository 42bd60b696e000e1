// Package host is the CPU transport of package collective: shared memory
// between the ranks of a host, TCP between hosts.
//
// Inside a host the ranks map memory that has no name (memfd), so nothing is
// left behind however they end. A vector that lies in memory from Alloc is
// reduced where it lies; any other passes through a staging area. Between
// hosts the first rank of each (its leader) exchanges partial results with
// all other leaders, slice by slice, or, where they are small, with some of them,
// each time of twice as many hosts.
//
// Invariants:
//   - Sums follow the balanced binary tree of package reduce, over the local
//     ranks in order and then over the hosts in order. Where every host has
//     the same power of two of consecutive ranks, or hosts are cut into blocks
//     that have (Config.Aligned), the bits do not depend on how many hosts there are, and 1, 2, 4, … ranks that each begin with
//     their part of the tree end with equal bits.
//   - Before a rank reads what another of its host brings, the two have compared
//     their requests; before a leader adds or passes on what came from another
//     host, it has compared its request with that leader's, directly or through
//     others. Data of a collective may be on their way before that.
//   - The ranks of a host pass a barrier all or none, also when the group is
//     aborted meanwhile.
//   - A rank notices the death of a process on its host by the end of a
//     socket, at once, not by a time-out.
//
// Who is not given the job's key cannot connect. What the leaders send to
// each other afterwards is neither encrypted nor authenticated.
//
// What waits is apart from what moves data. A runner takes collectives from a
// queue, in order, and has them carried out; a mover moves the data of one at a
// time, by shared memory (hostMover) or also by TCP (netMover), and knows of no
// queue; an alarm keeps the first failure and tells everybody.
//
// Concurrency: see collective.Comm. One goroutine of each Comm, or a caller that
// waits, carries out its collectives; one goroutine for each connection listens
// for trouble. Collectives allocate nothing once the first few have run.
// The package is for Linux.
package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ebtrain/collective"
)

// Exchange is an all-gather of small blobs that works before the group does:
// every rank calls it with the same name and gets every rank's blob, by rank.
// Names are not reused within a job.
type Exchange func(ctx context.Context, name string, mine []byte) ([][]byte, error)

// Config says what a rank must know to join its group.
type Config struct {
	Rank int // 0 ≤ Rank < Size
	Size int // 1 to 4096

	// Hosts has the host of each rank: any names, equal where two ranks share
	// memory. Empty means that all ranks share one host.
	Hosts []string

	// Launchers says by which launcher each rank was started. Ranks of a host
	// that one launcher started share memory; of those of several it is tried,
	// and where it does not work they are hosts of their own. Empty means one
	// launcher for each host.
	Launchers []int

	// Aligned cuts hosts into blocks of a power of two consecutive ranks, as large as can
	// be, so that sums have the bits of one host with all ranks. Between blocks
	// data go by TCP, also on one host.
	Aligned bool

	// Job is the name of the job and its epoch. Ranks of different jobs never
	// connect.
	Job string

	// Key is the job's secret, the same on every rank: at least 16 bytes,
	// unless Size is 1.
	Key []byte

	// Exchange is needed unless Size is 1.
	Exchange Exchange

	// ListenIP is the address (IPv4 or IPv6, with its zone if it needs one) at
	// which leaders of other hosts reach this one. It is needed only with several
	// hosts.
	ListenIP string

	// FirstPort and LastPort bound the port of that. Zero means any.
	FirstPort, LastPort int

	// Timeout bounds New. Zero means one minute.
	Timeout time.Duration

	// Recorded is the number of collectives that the flight recorder keeps.
	// Zero means 64.
	Recorded int

	// Logger gets warnings: refused connections, and the flight recorder when
	// the group fails. It is this rank's own: what it says of the rank is up to
	// who made it. Nil discards them.
	Logger *slog.Logger

	// Progress, if set, is called when a collective begins to run, by whoever
	// runs it: of a small one that Start has begun, when it is gone on with. It must
	// not block.
	Progress func(seq uint64, req collective.Request)

	// Ended, if set, is called when a collective for which Progress was called
	// has ended, with its error. It must not block.
	Ended func(seq uint64, err error)

	// Heard, if set, is called when data have arrived from the leader of another
	// host, by whoever reads them. It must not block.
	Heard func(rank int)

	// For tests.
	threads bool // leaders read with threads, however many processors there are
	width   int  // leaders stand in a grid of rows of so many, however few there are

	unacknowledged time.Duration // in place of the constant
}

const maxRanks = 4096

func (c *Config) validate() error {
	switch {
	case c.Size < 1 || c.Size > maxRanks:
		return fmt.Errorf("host: size is %d, expected 1 to %d", c.Size, maxRanks)
	case c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("host: rank is %d, expected 0 to %d", c.Rank, c.Size-1)
	case len(c.Hosts) != 0 && len(c.Hosts) != c.Size:
		return fmt.Errorf("host: %d hosts named, expected one for each of %d ranks", len(c.Hosts), c.Size)
	case len(c.Launchers) != 0 && len(c.Launchers) != c.Size:
		return fmt.Errorf("host: %d launchers numbered, expected one for each of %d ranks", len(c.Launchers), c.Size)
	case c.FirstPort < 0 || c.LastPort < c.FirstPort || c.LastPort > 65535 || c.LastPort > 0 && c.FirstPort == 0:
		return fmt.Errorf("host: ports are %d to %d, expected the first and the last of some, or 0 and 0", c.FirstPort, c.LastPort)
	case c.Timeout < 0 || c.Recorded < 0:
		return fmt.Errorf("host: timeout %v and recorded %d, expected neither to be negative", c.Timeout, c.Recorded)
	case c.Size > 1 && len(c.Key) < 16:
		return fmt.Errorf("host: key has %d bytes, expected at least 16", len(c.Key))
	case c.Size > 1 && c.Exchange == nil:
		return errors.New("host: no Exchange given, expected one for more than one rank")
	}
	if len(c.Hosts) == 0 {
		c.Hosts = make([]string, c.Size)
	}
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.Recorded = cmp.Or(c.Recorded, 64)
	c.unacknowledged = cmp.Or(c.unacknowledged, unacknowledged)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// card is what a rank tells all others before they are connected. It is small:
// every rank gets that of every other.
type card struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
	Hosts   string `json:"hosts"`           // digest of the list
	Local   string `json:"local,omitempty"` // where a leader listens for its host
	Net     string `json:"net,omitempty"`   // where a leader listens for other hosts
	Process int    `json:"process"`         // its number, which a container may have as well
}

// hostsDigest stands for the hosts of all ranks.
func hostsDigest(hosts []string) string {
	h := sha256.New()
	for _, name := range hosts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(name))))
		h.Write([]byte(name))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// version is that of everything ranks say to each other.
const version = 5

// New makes this rank's end of the group. It returns when this rank is
// connected with all that it needs, or with an error that says with which it
// is not. Every rank must call it; ctx bounds it, and is not used afterwards.
func New(ctx context.Context, cfg Config) (*Comm, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout,
		fmt.Errorf("not connected within %v", cfg.Timeout))
	defer cancel()
	var err error
	if cfg.Hosts, err = newClaims(cfg).prove(ctx, cfg, cfg.Logger); err != nil {
		return nil, fmt.Errorf("host: rank %d of job %q: %w", cfg.Rank, cfg.Job, err)
	}
	if cfg.Aligned { // of the hosts that are left: those of several launchers may not share memory
		cfg.Hosts = cutHosts(cfg.Hosts)
	}
	p, err := joined(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return newComm(cfg, p), nil
}

// swapCards exchanges cards and compares what must be equal on all ranks.
func swapCards(ctx context.Context, cfg Config, mine card) ([]card, error) {
	blob, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	blobs, err := cfg.Exchange(ctx, "collective/host "+cfg.Job, blob)
	if err != nil {
		return nil, fmt.Errorf("exchange addresses: %w", err)
	}
	if len(blobs) != cfg.Size {
		return nil, fmt.Errorf("exchange addresses: got %d answers, expected %d", len(blobs), cfg.Size)
	}
	cards := make([]card, cfg.Size)
	known := map[string]card{} // those of ranks that do not lead are all the same
	for r, b := range blobs {
		o, ok := known[string(b)]
		if !ok {
			if err := json.Unmarshal(b, &o); err != nil {
				return nil, fmt.Errorf("exchange addresses: rank %d: %w", r, err)
			}
			known[string(b)] = o
		}
		cards[r] = o
		switch {
		case o.Version != version:
			return nil, fmt.Errorf("rank %d speaks version %d, expected %d: run the same binary on all ranks", r, o.Version, version)
		case o.Job != cfg.Job:
			return nil, fmt.Errorf("rank %d belongs to job %q, expected %q", r, o.Job, cfg.Job)
		case o.Hosts != mine.Hosts:
			return nil, fmt.Errorf("rank %d has another list of hosts (digest %s) than this rank (%s): all ranks must be given the same", r, o.Hosts, mine.Hosts)
		}
	}
	return cards, nil
}
