package rendezvous

import (
	"bytes"
	"fmt"
	"testing"
)

// A message is little more than its blobs.
func TestEncode(t *testing.T) {
	m := Message{Kind: KindExchange, Epoch: 3, Seq: 7, Name: "x", Blobs: [][]byte{make([]byte, MaxBlob), {}, []byte("abc")}}
	b, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b) - MaxBlob; n > 200 {
		t.Errorf("%d bytes more than the blobs", n)
	}
	got, err := Decode(b)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(m) || len(got.Blobs) != 3 || got.Blobs[1] == nil || string(got.Blobs[2]) != "abc" {
		t.Errorf("got %d blobs, %v", len(got.Blobs), err)
	}
	m.Blobs = [][]byte{make([]byte, maxFrame)}
	if _, err := Encode(m); err == nil {
		t.Error("a message that is too long was encoded")
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range []Message{
		{Kind: KindExchange, Blobs: [][]byte{{1, 2}, {}}}, {Kind: KindAbort, Cause: &Cause{Kind: CauseRaised, Text: "x"}}, {Kind: KindAbort},
	} {
		b, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0, 0, 0, 9, '{', '}'})
	f.Add([]byte("\x00\x00\x00\x0e{\"sizes\":[-1]}x"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := Decode(in)
		if err != nil {
			return
		}
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(b)
		if err != nil || again.String() != m.String() {
			t.Errorf("%v became %v, %v", m, again, err)
		}
		if total := len(bytes.Join(m.Blobs, nil)); total > len(in) {
			t.Errorf("%d bytes of blobs in %d", total, len(in))
		}
	})
}
