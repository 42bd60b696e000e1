package host

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestCardsThatDiffer: who speaks another version, or of another job or list of hosts, is named,
// on every rank that reads its card.
func TestCardsThatDiffer(t *testing.T) {
	good := card{Version: version, Job: "job", Hosts: "digest", Process: 1}
	for want, change := range map[string]func(c *card){
		"":                                      func(c *card) { c.Process = 2 },
		"rank 1 speaks version 4, expected 5":   func(c *card) { c.Version-- },
		`rank 1 belongs to job "other", expect`: func(c *card) { c.Job = "other" },
		"rank 1 has another list of hosts (digest of others) than this rank (digest)": func(c *card) { c.Hosts = "of others" },
	} {
		other := good
		change(&other)
		cfg := Config{Size: 3, Job: "job", Exchange: func(_ context.Context, _ string, mine []byte) ([][]byte, error) {
			theirs, err := json.Marshal(other)
			return [][]byte{mine, theirs, mine}, err
		}}
		got, err := swapCards(t.Context(), cfg, good)
		if want == "" && (err != nil || len(got) != 3 || got[0] != good || got[1] != other || got[2] != good) {
			t.Errorf("cards of ranks that fit together: %+v, %v", got, err)
		}
		if want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
