package supervise

import (
	"fmt"
	"time"
)

// Ending is the news that the job's time ends at At, as How has said.
type Ending struct {
	At  time.Time
	How string
}

// ending has all ranks asked to stop while there is still time.
func (a *agent) ending(e Ending) {
	left := time.Until(e.At)
	a.console.say(fmt.Sprintf("the job's time ends at %s, in %v (%s)", e.At.Format(time.TimeOnly), left.Round(time.Second), e.How))
	a.apply(a.node.Ending(max(left, 0)))
}
