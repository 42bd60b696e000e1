package supervise

import "fmt"

// palette are the colours of prefixes: those that are seen on a light and on a dark
// ground, and no red, which means a failure elsewhere.
var palette = [...]int{36, 32, 33, 35, 34, 96, 92, 95}

// paint is text in the colour of a rank, the same all the time. What several ranks
// have said is in bold, and what the launcher says as it is.
func (c *console) paint(ranks []int, text string) string {
	switch {
	case !c.color || ranks[0] == launcher:
		return text
	case len(ranks) > 1:
		return "\x1b[1m" + text + "\x1b[0m"
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", palette[ranks[0]%len(palette)], text)
}
