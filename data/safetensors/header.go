package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// byteLen is the size in bytes of a tensor of this type and shape.
func byteLen(d DType, shape []int64) (int64, error) {
	size := d.Size()
	if size == 0 {
		return 0, fmt.Errorf("unknown dtype %q", string(d))
	}
	n := int64(size)
	for _, s := range shape {
		if s < 0 {
			return 0, fmt.Errorf("negative size in shape %v", shape)
		}
		if s > 0 && n > math.MaxInt64/s {
			return 0, fmt.Errorf("shape %v has more than 2^63 bytes", shape)
		}
		n *= s
	}
	return n, nil
}

// parseHeader reads the header's JSON. data is the length of the data section.
func parseHeader(header []byte, data int64) ([]Info, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, errors.New("header at offset 8 does not begin with '{'")
	}
	if !utf8.Valid(header) {
		return nil, nil, errors.New("header at offset 8 is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(header))
	var infos []Info
	var meta map[string]string
	seen := map[string]bool{}
	err := eachKey(d, func(key string) error {
		if seen[key] {
			return fmt.Errorf("duplicate name %q", key)
		}
		seen[key] = true
		if key == metadataKey {
			m, err := parseMetadata(d)
			meta = m
			return err
		}
		info, err := parseInfo(d, key)
		infos = append(infos, info)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("header, offset %d: %w", 8+d.InputOffset(), err)
	}
	if rest := bytes.TrimRight(header[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, nil, fmt.Errorf("header, offset %d: bytes after the JSON object", 8+d.InputOffset())
	}
	return infos, meta, checkOffsets(infos, data, int64(8+len(header)))
}

// eachKey walks one JSON object; f consumes the value of each key.
func eachKey(d *json.Decoder, f func(key string) error) error {
	if t, err := d.Token(); err != nil {
		return jsonError(err)
	} else if t != json.Delim('{') {
		return fmt.Errorf("found %v, expected an object", t)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return jsonError(err)
		}
		if err := f(t.(string)); err != nil { // keys of an object are strings
			return err
		}
	}
	_, err := d.Token()
	return jsonError(err)
}

func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("JSON ends too soon")
	}
	return err
}

func parseMetadata(d *json.Decoder) (map[string]string, error) {
	m := map[string]string{}
	err := eachKey(d, func(key string) error {
		if _, ok := m[key]; ok {
			return fmt.Errorf("duplicate metadata key %q", key)
		}
		t, err := d.Token()
		if err != nil {
			return jsonError(err)
		}
		s, ok := t.(string)
		if !ok {
			return fmt.Errorf("metadata %q is not a string", key)
		}
		m[key] = s
		return nil
	})
	return m, err
}

// entry is a tensor's JSON. Pointers tell absent from zero.
type entry struct {
	DType   *DType   `json:"dtype"`
	Shape   *[]int64 `json:"shape"`
	Offsets *[]int64 `json:"data_offsets"`
}

func parseInfo(d *json.Decoder, name string) (Info, error) {
	var e entry
	seen := map[string]bool{}
	err := eachKey(d, func(key string) error {
		if seen[key] {
			return fmt.Errorf("duplicate field %q", key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			return jsonError(d.Decode(&e.DType))
		case "shape":
			return jsonError(d.Decode(&e.Shape))
		case "data_offsets":
			return jsonError(d.Decode(&e.Offsets))
		}
		return fmt.Errorf("unknown field %q", key)
	})
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return Info{}, fmt.Errorf("tensor %q: %w", name, err)
	}
	return Info{Name: name, DType: *e.DType, Shape: *e.Shape, Begin: (*e.Offsets)[0], End: (*e.Offsets)[1]}, nil
}

func (e entry) check() error {
	if e.DType == nil || e.Shape == nil || e.Offsets == nil {
		return errors.New("needs dtype, shape and data_offsets")
	}
	off := *e.Offsets
	if len(off) != 2 || off[0] < 0 || off[1] < off[0] {
		return fmt.Errorf("data_offsets %v are not [begin, end] with 0 ≤ begin ≤ end", off)
	}
	n, err := byteLen(*e.DType, *e.Shape)
	if err != nil {
		return err
	}
	if off[1]-off[0] != n {
		return fmt.Errorf("data_offsets %v span %d bytes, but %s%v has %d", off, off[1]-off[0], *e.DType, *e.Shape, n)
	}
	return nil
}

// checkOffsets sorts infos by place and requires them to tile the data section.
func checkOffsets(infos []Info, data, start int64) error {
	slices.SortFunc(infos, func(a, b Info) int {
		if a.Begin != b.Begin {
			return cmpInt(a.Begin, b.Begin)
		}
		return cmpInt(a.End, b.End)
	})
	var at int64
	for _, i := range infos {
		switch {
		case i.Begin < at:
			return fmt.Errorf("tensor %q begins at data offset %d, inside the tensor before it, which ends at %d", i.Name, i.Begin, at)
		case i.Begin > at:
			return fmt.Errorf("tensor %q begins at data offset %d, leaving a gap after %d", i.Name, i.Begin, at)
		case i.End > data:
			return fmt.Errorf("tensor %q ends at data offset %d (file offset %d), but the file has only %d bytes of data: truncated, so copy it again", i.Name, i.End, start+i.End, data)
		}
		at = i.End
	}
	if at != data {
		return fmt.Errorf("%d bytes follow the last tensor at file offset %d", data-at, start+at)
	}
	return nil
}

func cmpInt(a, b int64) int {
	if a < b {
		return -1
	} else if a > b {
		return 1
	}
	return 0
}
