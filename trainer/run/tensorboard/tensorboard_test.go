package tensorboard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/data/atomicfile/powercut"
)

// The decoder below shares nothing with the writer: its CRC goes bit by bit,
// and it reads the wire format of protocol buffers by hand.

func slowCRC(b []byte) uint32 {
	crc := ^uint32(0)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			if crc&1 == 1 {
				crc = crc>>1 ^ 0x82f63b78
			} else {
				crc >>= 1
			}
		}
	}
	return ^crc
}

func unmask(m uint32) uint32 {
	r := m - 0xa282ead8
	return r>>17 | r<<15
}

// records splits a file and checks its CRCs.
func records(b []byte) ([][]byte, error) {
	var out [][]byte
	for len(b) > 0 {
		if len(b) < 12 || unmask(binary.LittleEndian.Uint32(b[8:])) != slowCRC(b[:8]) {
			return nil, fmt.Errorf("record %d: bad length", len(out))
		}
		n := int(binary.LittleEndian.Uint64(b))
		if len(b) < 16+n || unmask(binary.LittleEndian.Uint32(b[12+n:])) != slowCRC(b[12:12+n]) {
			return nil, fmt.Errorf("record %d: bad data", len(out))
		}
		out = append(out, b[12:12+n])
		b = b[16+n:]
	}
	return out, nil
}

// message is the fields of a message: numbers, or bytes.
type message struct {
	num map[int]uint64
	raw map[int][]byte
}

func varint(b []byte) (v uint64, rest []byte) {
	for shift := 0; ; shift += 7 {
		v |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return v, b[1:]
		}
		b = b[1:]
	}
}

func parse(t *testing.T, b []byte) message {
	t.Helper()
	m := message{map[int]uint64{}, map[int][]byte{}}
	for len(b) > 0 {
		var key, v uint64
		key, b = varint(b)
		field := int(key >> 3)
		switch key & 7 {
		case 0:
			v, b = varint(b)
			m.num[field] = v
		case 1:
			m.num[field], b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			v, b = varint(b)
			m.raw[field], b = b[:v], b[v:]
		case 5:
			m.num[field], b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		default:
			t.Fatalf("wire type %d", key&7)
		}
	}
	return m
}

func readEvents(t *testing.T, dir string) []message {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v; want one", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	recs, err := records(b)
	if err != nil {
		t.Fatal(err)
	}
	var events []message
	for _, r := range recs {
		events = append(events, parse(t, r))
	}
	return events
}

func clock() time.Time { return time.Unix(1_700_000_000, 250_000_000) }

func TestCRCKnown(t *testing.T) { // RFC 3720, B.4: 32 bytes of zeros
	if got := slowCRC(make([]byte, 32)); got != 0x8a9136aa {
		t.Errorf("CRC-32C %#x, want 0x8a9136aa", got)
	}
}

func TestScalars(t *testing.T) {
	dir := t.TempDir()
	w, err := create(dir, 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	const big = 1 << 40 // a step over five bytes of varint
	values := []struct {
		tag  string
		step int64
		v    float64
	}{{"loss/energy", 0, -0.1}, {"loss/énergie", big, math.Inf(1)}}
	for _, v := range values {
		if err := w.Scalar(v.tag, v.step, v.v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	events := readEvents(t, dir)
	if len(events) != 4 { // a version, a start, and the values
		t.Fatalf("%d events, want 4", len(events))
	}
	if v := string(events[0].raw[3]); v != "brain.Event:2" {
		t.Errorf("file version %q", v)
	}
	for i, v := range values {
		e := events[i+2]
		if sec := math.Float64frombits(e.num[1]); sec != 1_700_000_000.25 {
			t.Errorf("wall time %v", sec)
		}
		val := parse(t, parse(t, e.raw[5]).raw[1])
		if got := math.Float32frombits(uint32(val.num[2])); int64(e.num[2]) != v.step || string(val.raw[1]) != v.tag || got != float32(v.v) {
			t.Errorf("step %d, tag %q, value %v; want %+v", e.num[2], val.raw[1], got, v)
		}
	}
	if err := w.Scalar("x", 1, 1); err == nil {
		t.Error("writing after Close gives no error")
	}
}

func TestImages(t *testing.T) {
	gray := image.NewGray(image.Rect(0, 0, 3, 2))
	gray.SetGray(2, 1, color.Gray{200})
	rgb := image.NewRGBA(image.Rect(0, 0, 2, 5))
	for i := range rgb.Pix {
		rgb.Pix[i] = 255
	}
	tests := []struct {
		name  string
		m     image.Image
		space uint64
	}{{"gray", gray, 1}, {"rgb", rgb, 3}, {"alpha", image.NewNRGBA(image.Rect(0, 0, 1, 1)), 4}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := create(dir, 0, clock)
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := png.Encode(&file, tt.m); err != nil {
				t.Fatal(err)
			}
			if err := w.Image("samples", 7, file.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := w.Image("samples", 8, file.Bytes()); err == nil {
				t.Error("an image after Close gives no error")
			}
			event := readEvents(t, dir)[2]
			val := parse(t, parse(t, event.raw[5]).raw[1])
			if event.num[2] != 7 || string(val.raw[1]) != "samples" {
				t.Errorf("step %d, tag %q", event.num[2], val.raw[1])
			}
			pic := parse(t, val.raw[4])
			size := tt.m.Bounds().Size()
			if pic.num[1] != uint64(size.Y) || pic.num[2] != uint64(size.X) || pic.num[3] != tt.space {
				t.Errorf("height, width, colorspace %v, want %v, %d", pic.num, size, tt.space)
			}
			m, err := png.Decode(bytes.NewReader(pic.raw[4]))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := color.NRGBAModel.Convert(m.At(size.X-1, 1%size.Y)), color.NRGBAModel.Convert(tt.m.At(size.X-1, 1%size.Y)); got != want {
				t.Errorf("pixel %v, want %v", got, want)
			}
		})
	}
}

func TestImageIsNoPNG(t *testing.T) {
	w, err := create(t.TempDir(), 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Image("samples", 7, []byte("GIF89a")); err == nil || !strings.Contains(err.Error(), `image "samples"`) {
		t.Errorf("error %v, want one that names the image", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// After an event that could not be written no other is, even where the disk has room
// again: a viewer reads no further than the first record that is torn.
func TestNothingFollowsHalfARecord(t *testing.T) {
	w, err := create(t.TempDir(), 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	whole := w.f
	if w.f, err = os.Open(whole.Name()); err != nil { // which takes no writes
		t.Fatal(err)
	}
	if err := w.Scalar("a", 0, 1); err == nil {
		t.Error("an event was written into a file that takes none")
	}
	if err := w.f.Close(); err != nil {
		t.Fatal(err)
	}
	w.f = whole
	if err := w.Scalar("a", 1, 1); err == nil {
		t.Error("an event was written behind half of one")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// What was written survives a power cut once the file is closed, with its name.
func TestSurvivesPowerCut(t *testing.T) {
	powercut.Survives(t, func(dir string) error {
		w, err := Create(dir, 0)
		if err != nil {
			return err
		}
		return errors.Join(w.Scalar("a", 0, 1), w.Close())
	})
}

func TestResumeSupersedes(t *testing.T) {
	dir := t.TempDir()
	w, err := create(dir, 25, clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	events := readEvents(t, dir)
	if len(events) != 2 || events[1].num[2] != 25 || parse(t, events[1].raw[7]).num[1] != 1 {
		t.Errorf("events %+v, want a session start at step 25", events)
	}
	if _, err := Create(filepath.Join(dir, "missing"), 0); err == nil {
		t.Error("a missing folder gives no error")
	}
}

// Every start says that it is one, the first too, or TensorBoard would take the second for
// it. A run that failed before its first checkpoint begins with step 0 once more.
func TestBeginningAgainSupersedes(t *testing.T) {
	dir := t.TempDir()
	for start := range 2 {
		w, err := create(dir, 0, clock)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
		if err != nil || len(files) != start+1 {
			t.Fatalf("%d files after %d starts, %v", len(files), start+1, err)
		}
		newest := t.TempDir()
		if err := os.Rename(files[start], filepath.Join(newest, filepath.Base(files[start]))); err != nil {
			t.Fatal(err)
		}
		events := readEvents(t, newest)
		if len(events) != 2 || parse(t, events[1].raw[7]).num[1] != 1 {
			t.Errorf("start %d wrote %+v, want a version and the start of a session", start, events)
		}
		if err := os.Rename(filepath.Join(newest, filepath.Base(files[start])), files[start]); err != nil {
			t.Fatal(err)
		}
	}
}

// A run may go on at once, on a host whose clock is behind, or after one whose clock was
// ahead: the names of its files are in the order of its starts.
func TestFilesAreInOrder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, prefix+"99999999999.of.others"), nil, 0o666); err != nil { // no ten digits
		t.Fatal(err)
	}
	var before string
	for i, ahead := range []time.Duration{0, 0, -time.Hour, 24 * time.Hour, 0} {
		w, err := create(dir, int64(i), func() time.Time { return clock().Add(ahead) })
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if w.f.Name() <= before {
			t.Errorf("start %d writes into %s, the one before into %s", i, w.f.Name(), before)
		}
		before = w.f.Name()
	}
}
