package member

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// strangers counts the launchers of other jobs that wanted to join this one, and
// tells of them: of the first at once, of more every so often.
type strangers struct {
	log *slog.Logger

	mu     sync.Mutex
	count  int // in all
	told   int // of them told of
	at     time.Time
	last   net.Addr
	differ error // how the last one differs
}

// met counts one.
func (s *strangers) met(from net.Addr, differ error) {
	s.mu.Lock()
	s.count++
	s.last, s.differ = from, differ
	s.mu.Unlock()
	s.tell(false)
}

// tell tells of those that are not told of, if it is time or the end.
func (s *strangers) tell(end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == s.told || !end && s.told > 0 && time.Since(s.at) < tellInterval {
		return
	}
	s.told, s.at = s.count, time.Now()
	s.log.Warn("a launcher of another job was refused", "because", s.differ, "from", s.last, "so_far", s.count)
}
