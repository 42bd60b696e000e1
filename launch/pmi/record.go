package pmi

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// field is "key=value;" of a request or an answer.
type field struct{ key, value string }

type record []field

// get is the value of a key, "" if there is none.
func (r record) get(key string) string {
	for _, f := range r {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// lengthDigits is how many decimal digits of length come before a record.
const lengthDigits = 6

// encode makes a record as it is sent.
func encode(fields []field) ([]byte, error) {
	var b strings.Builder
	for _, f := range fields {
		if strings.ContainsAny(f.key+f.value, ";\n\x00") || strings.Contains(f.key, "=") {
			return nil, fmt.Errorf("%s=%q cannot be sent", f.key, f.value)
		}
		b.WriteString(f.key + "=" + f.value + ";")
	}
	if b.Len() > maxRecord {
		return nil, fmt.Errorf("a request of %d bytes is longer than %d", b.Len(), maxRecord)
	}
	return fmt.Appendf(nil, "%*d%s", lengthDigits, b.Len(), b.String()), nil
}

// read reads a record.
func read(r io.Reader) (record, error) {
	head := make([]byte, lengthDigits)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(head)), 10, 32)
	if err != nil || n > maxRecord {
		return nil, fmt.Errorf("an answer begins with %q, want its length", head)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	return decode(string(text))
}

// decode takes a record apart.
func decode(text string) (record, error) {
	var all record
	for part := range strings.SplitSeq(strings.TrimRight(text, ";\n\x00"), ";") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not of the form key=value", part)
		}
		all = append(all, field{key, value})
	}
	return all, nil
}
