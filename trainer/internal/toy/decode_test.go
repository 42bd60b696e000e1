package toy

import (
	"strings"
	"testing"
)

func TestDecoder(t *testing.T) {
	decode := Method().Decode
	if c, err := decode([]byte(`{"LR": 0.5, "W": 3}`)); err != nil || *c.(*Config) != (Config{LR: 0.5, W: 3}) {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := decode([]byte(`{"LR": 0.5, "Wide": 3}`)); c != nil || err == nil || !strings.Contains(err.Error(), "not the settings of toy") || !strings.Contains(err.Error(), "Wide") {
		t.Errorf("settings of another method: got %+v, %v", c, err)
	}
}
