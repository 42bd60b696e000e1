package algo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Decoder reads configs of type C for Method.Decode. Fields that C has not are
// refused: they are settings of another method.
func Decoder[C any, P interface {
	*C
	Config
}](method string) func(json.RawMessage) (Config, error) {
	return func(raw json.RawMessage) (Config, error) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		c := P(new(C))
		if err := d.Decode(c); err != nil {
			return nil, fmt.Errorf("these are not the settings of %s: %w", method, err)
		}
		return c, nil
	}
}
