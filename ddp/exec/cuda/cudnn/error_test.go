package cudnn

import "testing"

// TestStatuses: what becomes of what cuDNN cannot do, by its numbers. "Not supported" is an
// answer, and where an engine fails by itself, or for what the machine lacks, others may
// work; where the host or the device has no memory none would, and that is an error.
func TestStatuses(t *testing.T) {
	for status, want := range map[int]struct{ unsupported, ofEngine, full bool }{
		1001: {}, // not initialised
		1002: {}, // parts of different versions
		1008: {}, // a part is missing
		2000: {ofEngine: true},
		3000: {unsupported: true},
		3004: {unsupported: true},
		3005: {ofEngine: true}, // the driver is too old
		3009: {ofEngine: true}, // a part is not there
		3010: {unsupported: true},
		4000: {ofEngine: true},
		4003: {},
		4004: {full: true},
		5000: {ofEngine: true},
	} {
		e := &Error{Status: status}
		if e.Unsupported() != want.unsupported || e.ofEngine() != want.ofEngine || e.DeviceFull() != want.full {
			t.Errorf("%d: not supported %v, of its engine %v, device full %v, want %v", status, e.Unsupported(), e.ofEngine(), e.DeviceFull(), want)
		}
	}
}
