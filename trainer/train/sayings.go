package main

import (
	"log/slog"
	"sync"
)

// sayings are what a backend has to say to people, kept until there is a log.
type sayings struct {
	mu   sync.Mutex
	log  *slog.Logger
	kept []string
}

// say logs a sentence, or keeps it. Any goroutine may call it.
func (s *sayings) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		s.kept = append(s.kept, what)
		return
	}
	s.log.Info("backend", "says", what)
}

// to says all that was kept, and the rest, to a log.
func (s *sayings) to(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range s.kept {
		log.Info("backend", "says", what)
	}
	s.log, s.kept = log, nil
}
