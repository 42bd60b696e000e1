package main

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"
)

// TestStreamStrangers: who does not show the token is no end of a stream, and whoever does is,
// though others came before.
func TestStreamStrangers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ln, err := listen(loopback, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }() // await may have
	token := bytes.Repeat([]byte{7}, tokenBytes)
	dial := func(shown []byte) net.Conn {
		c, err := call(ctx, append(bytes.Clone(shown), ln.Addr().String()...))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	stranger, friend := dial(bytes.Repeat([]byte{8}, tokenBytes)), dial(token)
	defer func() { _, _ = stranger.Close(), friend.Close() }()
	got, err := await(ctx, ln, token)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Close() }()
	if got.RemoteAddr().String() != friend.LocalAddr().String() {
		t.Errorf("the end of the stream is %v, want %v; a stranger is %v", got.RemoteAddr(), friend.LocalAddr(), stranger.LocalAddr())
	}
}
