package rundir

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// appendRecord appends r as it stands in metrics.jsonl, without the newline:
// the bytes of json.Marshal of its line, which tests compare, without its
// allocations. names is memory for the names of the losses, which it returns.
func appendRecord(b []byte, r Record, names []string) ([]byte, []string) {
	b = appendInt(b, `{"step":`, r.Step)
	b = appendInt(b, `,"epoch":`, r.Epoch)
	b = appendInt(b, `,"samples":`, r.Samples)
	b = append(b, `,"losses":{`...)
	names = names[:0]
	for name := range r.Losses {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = appendNumber(append(b, ':'), r.Losses[name])
	}
	b = appendNumber(append(b, `},"samples_per_s":`...), r.SamplesPerS)
	b = appendNumber(append(b, `,"step_ms":`...), r.StepMS)
	b = appendNumber(append(b, `,"data_ms":`...), r.DataMS)
	b = appendNumber(append(b, `,"comm_ms":`...), r.CommMS)
	b = appendInt(b, `,"mem_bytes":`, r.MemBytes)
	b = appendNumber(append(b, `,"time":`...), r.Time)
	return append(b, '}'), names
}

func appendInt(b []byte, before string, n int64) []byte {
	return strconv.AppendInt(append(b, before...), n, 10)
}

// appendString appends s as a JSON string. Ordinary names need no escapes.
func appendString(b []byte, s string) []byte {
	plain := func(c rune) bool { return c >= ' ' && c < 0x7f && !strings.ContainsRune(`"\<>&`, c) }
	if strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) >= 0 {
		quoted, _ := json.Marshal(s) // a string has no error
		return append(b, quoted...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendNumber appends f as JSON does, and what JSON does not have as a string.
func appendNumber(b []byte, f float64) []byte {
	switch size := math.Abs(f); {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Inf"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Inf"`...)
	case size == 0 || size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' { // e-07 is written e-7
		b = append(b[:n-2], b[n-1])
	}
	return b
}
