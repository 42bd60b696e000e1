package rendezvous

import (
	"fmt"
	"strings"
	"testing"
)

// The ranks of one node may give more than an exchange has room for, even more than
// fits into a message: the job ends and says so, before anybody waits for what cannot
// be sent.
func TestExchangeTooLarge(t *testing.T) {
	for _, nproc := range []int{MaxExchange/MaxBlob + 1, maxFrame/MaxBlob + 1} {
		s := &sim{}
		for _, line := range []string{fmt.Sprintf("new nproc=1,%d", nproc), "start", "deliver"} {
			if err := s.do(strings.Fields(line)); err != nil {
				t.Fatal(err)
			}
		}
		var failed *Cause
		for local := range nproc {
			for _, e := range s.node("b").FromWorker(local, Message{Kind: KindExchange, Name: "big", Blobs: [][]byte{make([]byte, MaxBlob)}}) {
				send, ok := e.(Send)
				if !ok {
					continue
				}
				if _, err := Encode(send.Msg); err != nil {
					t.Errorf("%d ranks: %v", nproc, err)
				}
				if send.Msg.Kind == KindFail {
					failed = send.Msg.Cause
				}
			}
		}
		if failed == nil || !strings.Contains(failed.Error(), `exchange "big" is larger than 8388608 bytes over all ranks`) {
			t.Errorf("%d ranks: the node reports %v", nproc, failed)
		}
	}
}
