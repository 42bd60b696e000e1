package main

import (
	"strings"
	"testing"
	"time"

	"ebtrain/launch/progressbar"
	"ebtrain/trainer/method/bidvl"
)

// A phase that takes a minute and more is spoken of once, when its rate is known.
func TestReckoning(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	r := reckoning{now: func() time.Time { return at }}
	const long = "evaluate: samples: about 2m15s in all, by the first 60 of 2702; less with a smaller --batch"
	for i, tt := range []struct {
		phase       string
		after       time.Duration
		done, total int64
		want        string
	}{
		{"samples", 0, 0, 2702, ""},
		{"samples", 2 * time.Second, 40, 2702, ""},
		{"samples", time.Second, 60, 2702, long},
		{"samples", time.Minute, 1200, 2702, ""},
		{"loss", 0, 100, 10_000, ""}, // the first batch is no part of the time
		{"loss", 4 * time.Second, 1000, 10_000, ""},
		{"loss", 4 * time.Minute, 1100, 10_000, ""},
		{"samples", 0, 0, 10, ""},
		{"samples", 30 * time.Second, 0, 10, ""},
		{"samples", 30 * time.Second, 1, 10, "evaluate: samples: about 10m00s in all, by the first 1 of 10; less with a smaller --batch"},
		{"samples", 0, 0, 10, ""}, // drawn once more
		{"samples", time.Minute, 1, 10, "evaluate: samples: about 10m00s in all, by the first 1 of 10; less with a smaller --batch"},
	} {
		at = at.Add(tt.after)
		if got := r.line(tt.phase, tt.done, tt.total, "a smaller --batch"); got != tt.want {
			t.Errorf("%d: %q, want %q", i, got, tt.want)
		}
	}
}

// Samples that come of a pass each are counted, and those of long chains by transitions.
func TestDrawingOf(t *testing.T) {
	for _, tt := range []struct {
		transitions, chain, done int
		want                     string
	}{
		{1, 0, 1, "samples 20/50\n"}, {1, 2, 1, "samples 50/50\n"},
		{2702, 1, 100, "samples 2802/8106\n"}, {2702, 2, 2702, "samples 8106/8106\n"},
	} {
		var out strings.Builder
		e := &evaluation{o: options{samples: 50, batch: 20}, takes: bidvl.CIFAR10().Config.Takes(), show: progressbar.ConfigurePhases(progressbar.Config{Out: &out})}
		e.drawingOf("samples", tt.transitions)(tt.chain, tt.done)
		if out.String() != tt.want {
			t.Errorf("%+v: %q", tt, out.String())
		}
	}
}
