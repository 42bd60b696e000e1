package threads

import "sync/atomic"

// span is the chunks of a job that one thread is to do and nobody has taken yet. It is one
// word, the job's number (32 bits), the first chunk (16) and the one after the last (16),
// so that a late thread can never take a chunk of a job that is over.
type span struct {
	word atomic.Uint64
	_    [120]byte // threads take chunks from words of their own, in lines of their own, fetched in pairs
}

func (s *span) set(job uint32, lo, hi int) {
	s.word.Store(uint64(job)<<32 | uint64(lo)<<16 | uint64(hi))
}

// first takes the first chunk, which is near the one that its thread did before.
func (s *span) first() (chunk int, ok bool) {
	for {
		w := s.word.Load()
		lo, hi := int(w>>16&0xffff), int(w&0xffff)
		if lo == hi {
			return 0, false
		}
		if s.word.CompareAndSwap(w, w+1<<16) {
			return lo, true
		}
	}
}

// last takes the last chunk, which its thread would come to last.
func (s *span) last() (chunk int, ok bool) {
	for {
		w := s.word.Load()
		lo, hi := int(w>>16&0xffff), int(w&0xffff)
		if lo == hi {
			return 0, false
		}
		if s.word.CompareAndSwap(w, w-1) {
			return hi - 1, true
		}
	}
}
