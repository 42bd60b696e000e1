package rendezvous

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// exact is a string that JSON does not change: names of files, arguments and what programs
// write may be any bytes. One that is not UTF-8 becomes a list of its bytes.
type exact string

func (e exact) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(e)) {
		return json.Marshal(string(e))
	}
	return json.Marshal([][]byte{[]byte(e)})
}

func (e *exact) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, (*string)(e))
	}
	var bytes [][]byte
	if err := json.Unmarshal(b, &bytes); err != nil {
		return err
	}
	if len(bytes) != 1 {
		return fmt.Errorf("a text of %d parts", len(bytes))
	}
	*e = exact(bytes[0])
	return nil
}

// exactLine and exactCommand are what they are named after, in JSON.
type exactLine struct {
	Stream int   `json:"stream"`
	Text   exact `json:"text"`
	Ranks  []int `json:"ranks"`
}

type exactCommand struct {
	Program exact   `json:"program"`
	Digest  string  `json:"digest"`
	Args    []exact `json:"args"`
}

func (l Line) MarshalJSON() ([]byte, error) {
	return json.Marshal(exactLine{l.Stream, exact(l.Text), l.Ranks})
}

func (l *Line) UnmarshalJSON(b []byte) error {
	var x exactLine
	err := json.Unmarshal(b, &x)
	*l = Line{x.Stream, string(x.Text), x.Ranks}
	return err
}

func (c Command) MarshalJSON() ([]byte, error) {
	return json.Marshal(exactCommand{exact(c.Program), c.Digest, convert[exact](c.Args)})
}

func (c *Command) UnmarshalJSON(b []byte) error {
	var x exactCommand
	err := json.Unmarshal(b, &x)
	*c = Command{string(x.Program), x.Digest, convert[string](x.Args)}
	return err
}

// convert makes strings of one type of those of another.
func convert[To, From ~string](all []From) []To {
	to := make([]To, len(all))
	for i, s := range all {
		to[i] = To(s)
	}
	return to
}
