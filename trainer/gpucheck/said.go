package main

import (
	"fmt"
	"strings"
	"sync"
)

// said is what a backend has said.
type said struct {
	mu   sync.Mutex
	list []string
}

func (s *said) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, text)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.list, "\n")
}

// embodied is an error, with what was said of why, if a session's steps were to be the body
// of a node and are not.
func (s *session) embodied(said *said) error {
	if c, ok := s.step.(captured); ok && c.Embodied() {
		return nil
	}
	return fmt.Errorf("%w: the steps are no body of a node:\n%s", errSkipped, said)
}
