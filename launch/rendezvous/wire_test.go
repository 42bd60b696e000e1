package rendezvous

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
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

// What ends something says why: who receives it need not look.
func TestDecodeWithoutCause(t *testing.T) {
	for _, kind := range []Kind{KindAbort, KindRefuse, KindFail} {
		b, err := Encode(Message{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(b); !errors.Is(err, errMessage) || !strings.Contains(err.Error(), "without a cause") {
			t.Errorf("%s: got %v", kind, err)
		}
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

// TestLongHeader sends a list of many nodes, compressed, beside a blob; and refuses one
// that is damaged, or too long once it is not compressed any more.
func TestLongHeader(t *testing.T) {
	m := Message{Kind: KindGathered, Blobs: [][]byte{[]byte("blob"), {}}}
	for i := range 1000 {
		m.Nodes = append(m.Nodes, NodeInfo{Name: fmt.Sprintf("node%05d-%d-%08x", i, 100+i, i*i*40503), Host: fmt.Sprintf("node%05d", i), HostID: "id", Nproc: 8, Want: -1, Nodes: 1000})
	}
	b, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > len(plain)/3 {
		t.Errorf("%d bytes, of %d", len(b), len(plain))
	}
	back, err := Decode(b)
	if err != nil || len(back.Blobs) != 2 || string(back.Blobs[0]) != "blob" || fmt.Sprint(back.Nodes) != fmt.Sprint(m.Nodes) {
		t.Errorf("came back as %.200s, %v", back, err)
	}
	damaged := bytes.Clone(b)
	for i := 100; i < 200; i++ {
		damaged[i] = 0xff
	}
	if _, err := Decode(damaged); !errors.Is(err, errMessage) {
		t.Errorf("a damaged header: %v", err)
	}
	bomb, err := deflate(make([]byte, maxFrame+1))
	if err != nil {
		t.Fatal(err)
	}
	bomb = append(binary.BigEndian.AppendUint32(nil, uint32(len(bomb))|compressed), bomb...)
	if _, err := Decode(bomb); !errors.Is(err, errMessage) || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a header that grows too long: %v", err)
	}
}

// What is no UTF-8 arrives as it was: node 0 knows a command with such arguments again, and a
// line is shown as it was written.
func TestAnyBytes(t *testing.T) {
	for _, text := range []string{"", "a", "<é>\u2028", "\ufffd", "caf\xe9", "\xff\xfe\x00", `["x"]`} {
		m := Message{Kind: KindRegister, Command: &Command{Program: text, Digest: "b1", Args: []string{"--name", text}}, Lines: []Line{{Stream: 1, Text: text, Ranks: []int{3}}}}
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%q became %+v, %+v, %v", text, got.Command, got.Lines, err)
		}
		if got.Command != nil && got.Command.differs(*m.Command) != "" {
			t.Errorf("%q: %s", text, got.Command.differs(*m.Command))
		}
	}
	for _, bad := range []string{`{"kind":"lines","lines":[{"text":[]}]}`, `{"kind":"lines","lines":[{"text":["YQ==","YQ=="]}]}`, `{"kind":"lines","lines":[{"text":["%"]}]}`, `{"kind":"lines","lines":[{"text":7}]}`} {
		var m Message
		if err := json.Unmarshal([]byte(bad), &m); err == nil {
			t.Errorf("%s was taken for %v", bad, m)
		}
	}
}
