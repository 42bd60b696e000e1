// Package statuspage is a few pages of memory in which a rank writes what it is
// doing and its launcher reads it, also after the rank has been killed; the
// launcher writes there how wide its terminal is.
//
// The launcher makes the page (New), hands its descriptor to the worker, and
// keeps its own mapping; the worker maps the inherited descriptor (Open).
// Writing is a few dozen stores and no system call.
//
// The page has two slots. A write fills the slot that is not current and then
// publishes it, so what a reader finds is whole even if the writer died in
// the middle. Write may be called from any goroutine; Read from any process.
// The page's size is sealed: no process can take it away from the others, who
// would die of SIGBUS at their next look.
package statuspage

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pageBytes  = 64 << 10 // what is not used takes no memory
	slotWords  = 64       // of 8 bytes
	phaseBytes = 32       // longer phases are cut
	labelBytes = 128      // longer labels are cut
	magic      = 0x6562747261696e31

	wordMagic = 0
	wordCount = 1                       // number of writes; slot count%2 is current
	wordWidth = 2                       // columns that the launcher's terminal has for the rank
	wordBegun = 3                       // collectives begun and ended, then exchanges begun and ended
	wordSlots = 8                       // first word of slot 0
	wordRing  = wordSlots + 2*slotWords // first of the last collectives, see ring.go
	wordNodes = wordRing + ringWords    // first of those that count what arrives from each node

	slotStep  = 0
	slotSeq   = 1
	slotLens  = 2 // phase length, label length << 32
	slotPhase = 3
	slotLabel = slotPhase + phaseBytes/8
)

// Report is what a rank was doing.
type Report struct {
	Step  int64  // training step from 0; negative if there is none
	Phase string // "all-reduce", "load", "checkpoint": what
	Seq   uint64 // number of the collective from 0; shown if Label is set
	Label string // "generator/bucket 3": on what
}

// String is the report as it follows the words "killed by SIGSEGV": "during
// all-reduce generator/bucket 3, seq 8812, step 41". The zero Phase gives "".
func (r Report) String() string {
	if r.Phase == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("during " + r.Phase)
	if r.Label != "" {
		fmt.Fprintf(&b, " %s, seq %d", r.Label, r.Seq)
	}
	if r.Step >= 0 {
		fmt.Fprintf(&b, ", step %d", r.Step)
	}
	return b.String()
}

// Kind is a kind of meeting of all ranks.
type Kind int

const (
	Collectives Kind = iota // of the data path
	Exchanges               // through the launchers
	kinds
)

// Meetings counts those of a kind that a rank has begun and ended: it is in one
// if they differ, and then waits for ranks that have not come to it.
type Meetings struct{ Begun, Ended uint64 }

// Counts is how far a rank has come: a rank that gets on writes reports.
type Counts struct {
	Reports uint64
	Met     [kinds]Meetings
}

// Page is a mapping of the shared page. Besides the rank's reports it holds one
// number of the launcher: how wide the rank's lines may be.
type Page struct {
	mu    sync.Mutex // one writer at a time
	bytes []byte     // nil after Close
	words *[pageBytes / 8]uint64
}

// New makes a page. The file is to be inherited by the worker; the caller
// closes it once the worker runs. The page lives until Close.
func New() (*Page, *os.File, error) {
	fd, err := unix.MemfdCreate("ebtrain-progress", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("make the progress page: %w", err)
	}
	f := os.NewFile(uintptr(fd), "ebtrain-progress")
	if err := f.Truncate(pageBytes); err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("size the progress page: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("seal the progress page: %w", err)
	}
	p, err := mapPage(fd)
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	atomic.StoreUint64(&p.words[wordMagic], magic)
	return p, f, nil
}

// Open maps the page behind an inherited descriptor. The descriptor may be
// closed afterwards. A descriptor that is something else is an error.
func Open(fd int) (*Page, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("descriptor %d is not open: %w", fd, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != pageBytes {
		return nil, fmt.Errorf("descriptor %d is not a progress page", fd)
	}
	p, err := mapPage(fd)
	if err != nil {
		return nil, err
	}
	if atomic.LoadUint64(&p.words[wordMagic]) != magic {
		_ = p.Close()
		return nil, fmt.Errorf("descriptor %d is not a progress page", fd)
	}
	return p, nil
}

func mapPage(fd int) (*Page, error) {
	b, err := unix.Mmap(fd, 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the progress page: %w", err)
	}
	return &Page{bytes: b, words: (*[pageBytes / 8]uint64)(unsafe.Pointer(&b[0]))}, nil
}

// Write publishes r. After Close it does nothing.
func (p *Page) Write(r Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return
	}
	n := atomic.LoadUint64(&p.words[wordCount]) + 1
	s := p.slot(n)
	phase, label := cut(r.Phase, phaseBytes), cut(r.Label, labelBytes)
	atomic.StoreUint64(&s[slotStep], uint64(r.Step))
	atomic.StoreUint64(&s[slotSeq], r.Seq)
	atomic.StoreUint64(&s[slotLens], uint64(len(phase))|uint64(len(label))<<32)
	storeString(s[slotPhase:], phase)
	storeString(s[slotLabel:], label)
	atomic.StoreUint64(&p.words[wordCount], n)
}

// Read returns the last report; ok is false if there was none yet or the page
// is closed.
func (p *Page) Read() (r Report, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return Report{}, false
	}
	for {
		n := atomic.LoadUint64(&p.words[wordCount])
		if n == 0 {
			return Report{}, false
		}
		s := p.slot(n)
		lens := atomic.LoadUint64(&s[slotLens])
		r = Report{
			Step:  int64(atomic.LoadUint64(&s[slotStep])),
			Seq:   atomic.LoadUint64(&s[slotSeq]),
			Phase: loadString(s[slotPhase:], min(int(uint32(lens)), phaseBytes)),
			Label: loadString(s[slotLabel:], min(int(lens>>32), labelBytes)),
		}
		if atomic.LoadUint64(&p.words[wordCount]) == n {
			return r, true
		}
	}
}

// Began says that the rank has begun n meetings of a kind; of collectives Begin
// says it.
func (p *Page) Began(k Kind, n uint64) { p.count(wordBegun+2*int(k), n) }

// Ended says that the rank has ended n meetings of a kind.
func (p *Page) Ended(k Kind, n uint64) { p.count(wordBegun+2*int(k)+1, n) }

func (p *Page) count(word int, n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes != nil {
		atomic.StoreUint64(&p.words[word], n)
	}
}

// Counts is how far the rank has come. What it has ended is read first, so that
// a rank may seem to be in a meeting that it has left, but never the reverse.
func (p *Page) Counts() (c Counts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return c
	}
	for k := range c.Met {
		c.Met[k].Ended = atomic.LoadUint64(&p.words[wordBegun+2*k+1])
		c.Met[k].Begun = atomic.LoadUint64(&p.words[wordBegun+2*k])
	}
	c.Reports = atomic.LoadUint64(&p.words[wordCount])
	return c
}

// MaxNodes is of how many nodes a page counts what arrives.
const MaxNodes = pageBytes/8 - wordNodes

// Heard says that data have arrived from the ranks of a node. Of nodes from
// MaxNodes on nothing is kept.
func (p *Page) Heard(node int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes != nil && node < MaxNodes {
		atomic.AddUint64(&p.words[wordNodes+node], 1)
	}
}

// HeardFrom is how often data have arrived from the ranks of a node.
func (p *Page) HeardFrom(node int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil || node >= MaxNodes {
		return 0
	}
	return atomic.LoadUint64(&p.words[wordNodes+node])
}

// SetWidth tells the rank how many columns its lines have on the launcher's
// terminal; 0 means that there is none, or that its width is not known.
func (p *Page) SetWidth(columns int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes != nil {
		atomic.StoreUint64(&p.words[wordWidth], uint64(columns))
	}
}

// Width is what the launcher has last said by SetWidth.
func (p *Page) Width() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return 0
	}
	return int(atomic.LoadUint64(&p.words[wordWidth]))
}

func (p *Page) slot(n uint64) []uint64 {
	start := wordSlots + int(n%2)*slotWords
	return p.words[start : start+slotWords]
}

// Close unmaps the page. It may be called more than once.
func (p *Page) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes == nil {
		return nil
	}
	b := p.bytes
	p.bytes, p.words = nil, nil
	return unix.Munmap(b)
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

// storeString writes s into words, eight bytes at a time.
func storeString(words []uint64, s string) {
	for i := 0; len(s) > 0; i++ {
		var w uint64
		for j := 0; j < 8 && j < len(s); j++ {
			w |= uint64(s[j]) << (8 * j)
		}
		atomic.StoreUint64(&words[i], w)
		s = s[min(8, len(s)):]
	}
}

func loadString(words []uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(atomic.LoadUint64(&words[i/8]) >> (8 * (i % 8)))
	}
	return string(b)
}
