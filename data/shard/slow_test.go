package shard

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ebtrain/data"
)

// stuck is a file of which nothing can be read until there is word.
type stuck struct {
	*os.File
	asked func()
	word  <-chan struct{}
}

func (s stuck) ReadAt(b []byte, at int64) (int, error) {
	s.asked()
	<-s.word
	return s.File.ReadAt(b, at)
}

// While the storage of one shard does not answer, others are read: a pool has blocks of
// hundreds of shards, of each of which the table is read first.
func TestSlowShardKeepsNobodyWaiting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	write(t, dir, 21, Options{})
	r, err := Open(dir, "train")
	if err != nil {
		t.Fatal(err)
	}
	waits, word, slow := make(chan struct{}), make(chan struct{}), r.path(0)
	asked := sync.OnceFunc(func() { close(waits) })
	r.open = func(path string) (file, error) {
		f, err := os.Open(path)
		if path == slow {
			return stuck{f, asked, word}, err
		}
		return f, err
	}
	first := make(chan error)
	go func() { first <- r.ReadBlock(0, new(data.Block)) }()
	<-waits
	others := make(chan error)
	go func() { others <- r.ReadBlock(len(r.spans)-1, new(data.Block)) }()
	select {
	case err := <-others:
		if err != nil {
			t.Error(err)
		}
		close(word)
	case <-time.After(time.Minute):
		t.Error("a block of another shard was not read in a minute")
		close(word)
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}
