// Package tensorboard writes TensorBoard event files: scalars and images by step.
//
// A file is a sequence of TFRecords, each
//
//	u64 little-endian   length n of the data
//	u32 little-endian   masked CRC-32C of the 8 bytes before
//	n bytes             an Event, protocol buffers (event.proto, summary.proto of TensorBoard)
//	u32 little-endian   masked CRC-32C of the data
//
// where masking rotates the CRC right by 15 bits and adds 0xa282ead8. The first
// event names the version. Each record is written with one write, so a viewer
// that follows the file, or a kill, finds whole records and at most one torn
// at the end.
//
// A Writer belongs to one goroutine, on rank 0.
package tensorboard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image/color"
	"image/png"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"ebtrain/data/atomicfile"
)

// Field numbers of the messages.
const (
	eventWallTime    = 1 // Event
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7

	summaryValue = 1 // Summary
	valueTag     = 1 // Summary.Value
	valueSimple  = 2
	valueImage   = 4

	imageHeight     = 1 // Summary.Image
	imageWidth      = 2
	imageColorspace = 3 // 1 grey, 3 RGB, 4 RGBA
	imageEncoded    = 4

	sessionStatus = 1 // SessionLog
	sessionStart  = 1
)

// Writer appends events to one file.
type Writer struct {
	f   *os.File
	now func() time.Time
	err error // of the first write that went wrong: what follows would be unreadable

	// for reuse: a message of each depth, and the record
	entry, summary, message, framed []byte
}

// Create makes a new event file in the folder dir, beside those of earlier
// starts of the run; TensorBoard shows them as one. A start says that it supersedes what
// earlier files have of its step and later ones. The first says so, too: TensorBoard takes
// the first that it reads for no restart, and so would not hear of the first resume.
func Create(dir string, step int64) (*Writer, error) { return create(dir, step, time.Now) }

func create(dir string, step int64, now func() time.Time) (*Writer, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	last, err := newest(dir)
	if err != nil {
		return nil, err
	}
	t := now()
	// The viewer reads the files of a folder in the order of their names, and goes on to
	// later ones only. So they rise, whatever the clock of this host says.
	name := fmt.Sprintf("%s%010d.%s.%d.%09d", prefix, max(t.Unix(), last+1), host, os.Getpid(), t.Nanosecond())
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	w := &Writer{f: f, now: now}
	err = atomicfile.SyncDir(dir) // the name, which Close does not sync
	if err == nil {
		err = w.event(0, eventFileVersion, []byte("brain.Event:2"))
	}
	if err == nil {
		err = w.event(step, eventSessionLog, intField(nil, sessionStatus, sessionStart))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// prefix begins the names of event files; seconds since 1970 in ten digits follow.
const prefix = "events.out.tfevents."

// newest is the largest time in the names of the event files in dir, 0 without any.
func newest(dir string) (last int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		rest, is := strings.CutPrefix(e.Name(), prefix)
		digits, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.ParseInt(digits, 10, 64); is && err == nil && len(digits) == 10 {
			last = max(last, n)
		}
	}
	return last, err
}

// Scalar writes v, rounded to float32, under a tag such as "loss/energy".
func (w *Writer) Scalar(tag string, step int64, v float64) error {
	value := stringField(w.entry[:0], valueTag, tag)
	value = protowire.AppendTag(value, valueSimple, protowire.Fixed32Type)
	value = protowire.AppendFixed32(value, math.Float32bits(float32(v)))
	w.entry = value
	return w.value(step, value)
}

// Image writes a picture, a PNG, under a tag such as "samples".
func (w *Writer) Image(tag string, step int64, encoded []byte) error {
	m, err := png.DecodeConfig(bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("image %q: %w", tag, err)
	}
	pic := intField(nil, imageHeight, uint64(m.Height))
	pic = intField(pic, imageWidth, uint64(m.Width))
	pic = intField(pic, imageColorspace, colorspace(m.ColorModel))
	pic = bytesField(pic, imageEncoded, encoded)
	return w.value(step, bytesField(stringField(nil, valueTag, tag), valueImage, pic))
}

// colorspace is the number of channels, by what the reader of PNGs makes of pictures
// without any transparent place.
func colorspace(m color.Model) uint64 {
	switch m {
	case color.GrayModel, color.Gray16Model:
		return 1
	case color.RGBAModel, color.RGBA64Model:
		return 3
	}
	return 4
}

// Close syncs and closes the file.
func (w *Writer) Close() error { return errors.Join(w.f.Sync(), w.f.Close()) }

func (w *Writer) value(step int64, value []byte) error {
	w.summary = bytesField(w.summary[:0], summaryValue, value)
	return w.event(step, eventSummary, w.summary)
}

// event writes one record: field, at step, now.
func (w *Writer) event(step int64, field protowire.Number, what []byte) error {
	if w.err != nil {
		return w.err
	}
	e := protowire.AppendTag(w.message[:0], eventWallTime, protowire.Fixed64Type)
	e = protowire.AppendFixed64(e, math.Float64bits(float64(w.now().UnixMicro())/1e6))
	e = intField(e, eventStep, uint64(step))
	w.message = bytesField(e, field, what)
	w.framed = record(w.framed[:0], w.message)
	_, w.err = w.f.Write(w.framed)
	return w.err
}

// record appends data, framed, to b, which is empty.
func record(b, data []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}

// masked is the CRC-32C of b in the form that TFRecords use, because a CRC of
// data that contains CRCs is weak.
func masked(b []byte) uint32 {
	crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return bits.RotateLeft32(crc, -15) + 0xa282ead8
}

func bytesField(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func stringField(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func intField(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}
