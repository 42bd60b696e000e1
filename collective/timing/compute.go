package timing

import "time"

// computing is what a rank does between collectives that are timed after computing: it
// goes through memory as a step does, so that caches hold none of what a collective needs.
type computing struct {
	mem []float32
	at  int
}

const (
	swept = 1 << 20 // elements, more than a processor's second cache holds
	piece = 1 << 11 // elements between two looks at the clock, about a microsecond
)

// until computes until a time.
func (c *computing) until(end time.Time) {
	if c.mem == nil {
		c.mem = make([]float32, swept)
	}
	for time.Now().Before(end) {
		part := c.mem[c.at : c.at+piece]
		for i := range part {
			part[i] = part[i]*0.5 + 1
		}
		c.at = (c.at + piece) % swept
	}
}
