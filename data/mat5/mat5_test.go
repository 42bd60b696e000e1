package mat5

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maker writes files as the format's description has it.
type maker struct{ order binary.ByteOrder }

func (m maker) u32(v ...uint32) []byte {
	var b []byte
	for _, v := range v {
		b = append(b, 0, 0, 0, 0)
		m.order.PutUint32(b[len(b)-4:], v)
	}
	return b
}

// element is one of any length, small ones in their tag.
func (m maker) element(kind uint32, data []byte) []byte {
	if n := len(data); n > 0 && n <= 4 {
		return append(m.u32(uint32(n)<<16|kind), append(slices.Clone(data), make([]byte, 4-n)...)...)
	}
	b := append(m.u32(kind, uint32(len(data))), data...)
	return append(b, make([]byte, -len(data)&7)...)
}

func (m maker) matrix(name string, flags uint32, dims []uint32, kind uint32, data []byte) []byte {
	var body []byte
	body = append(body, m.element(miUINT32, m.u32(flags, 0))...)
	body = append(body, m.element(miINT32, m.u32(dims...))...)
	body = append(body, m.element(miINT8, []byte(name))...)
	body = append(body, m.element(kind, data)...)
	return append(m.u32(miMATRIX, uint32(len(body))), body...)
}

func (m maker) packed(t testing.TB, element []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(element); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(m.u32(miCOMPRESSED, uint32(z.Len())), z.Bytes()...)
}

func (m maker) file(elements ...[]byte) []byte {
	head := append(bytes.Repeat([]byte("M"), 124), 0, 0, 0, 0)
	m.order.PutUint16(head[124:], 0x0100)
	m.order.PutUint16(head[126:], 'M'<<8|'I')
	return append(head, bytes.Join(elements, nil)...)
}

func makers() []maker { return []maker{{binary.LittleEndian}, {binary.BigEndian}} }

// values are 6 numbers in each type that can hold them.
func (m maker) values(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, m.order, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAllTypes(t *testing.T) {
	for _, m := range makers() {
		for kind, v := range map[uint32]any{
			miINT8: []int8{-1, 2, 3, 4, 5, 6}, miUINT8: []uint8{255, 2, 3, 4, 5, 6},
			miINT16: []int16{-300, 2, 3, 4, 5, 6}, miUINT16: []uint16{65535, 2, 3, 4, 5, 6},
			miINT32: []int32{-1 << 30, 2, 3, 4, 5, 6}, miUINT32: []uint32{1<<32 - 1, 2, 3, 4, 5, 6},
			miINT64: []int64{-1 << 40, 2, 3, 4, 5, 6}, miUINT64: []uint64{1 << 50, 2, 3, 4, 5, 6},
			miSINGLE: []float32{0.5, 2, 3, 4, 5, 6}, miDOUBLE: []float64{1e-300, 2, 3, 4, 5, 6},
		} {
			first := map[uint32]float64{
				miINT8: -1, miUINT8: 255, miINT16: -300, miUINT16: 65535, miINT32: -1 << 30, miUINT32: 1<<32 - 1,
				miINT64: -1 << 40, miUINT64: 1 << 50, miSINGLE: 0.5, miDOUBLE: 1e-300,
			}[kind]
			a := m.matrix("some_name", uint32(Double), []uint32{3, 2}, kind, m.values(t, v))
			small := m.matrix("s", uint32(Uint8)|0x0400, []uint32{1, 3}, miUINT8, []byte{7, 8, 9})
			b := m.file(a, m.packed(t, a), small, m.packed(t, small))
			r, err := NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []struct {
				text   string
				values []float64
			}{
				{"some_name (3×2 double)", []float64{first, 2, 3, 4, 5, 6}}, {"some_name (3×2 double)", []float64{first, 2, 3, 4, 5, 6}},
				{"s (1×3 uint8)", []float64{7, 8, 9}}, {"s (1×3 uint8)", []float64{7, 8, 9}},
			} {
				got, err := r.Next()
				if err != nil || got.String() != want.text {
					t.Fatalf("%v, type %d: %v, %v, want %s", m.order, kind, got, err, want.text)
				}
				if v, err := r.Values(); err != nil || !slices.Equal(v, want.values) {
					t.Errorf("%v, type %d: %v, %v, want %v", m.order, kind, v, err, want.values)
				}
				if _, err := r.Values(); err == nil {
					t.Error("values are read twice")
				}
			}
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("after the last variable: %v", err)
			}
		}
	}
}

// What is not asked for is passed over, whatever its class.
func TestListsWhatItCannotRead(t *testing.T) {
	m := maker{binary.LittleEndian}
	b := m.file(
		m.matrix("text", 4, []uint32{1, 5}, miUTF8, []byte("hello")),
		m.packed(t, m.matrix("z", uint32(Double)|0x0800, []uint32{1, 1}, miDOUBLE, make([]byte, 8))),
		m.matrix("last", uint32(Uint16), []uint32{1, 1}, miUINT8, []byte{5}),
	)
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"text (1×5 char)", "z (1×1 complex double)"} {
		if v, err := r.Next(); err != nil || v.String() != want {
			t.Fatalf("%v, %v, want %s", v, err, want)
		}
		if _, err := r.Values(); err == nil || !strings.Contains(err.Error(), want+", expected real numbers") {
			t.Errorf("values of %s: %v", want, err)
		}
	}
	if v, err := r.Next(); err != nil || v.Name != "last" {
		t.Fatalf("%v, %v", v, err)
	}
	if v, err := r.Values(); err != nil || !slices.Equal(v, []float64{5}) {
		t.Errorf("%v, %v", v, err)
	}
}

// read reads all that b holds, to the first error.
func read(b []byte) error {
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	for {
		v, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if v.Len() > 1<<16 { // a lie or a bomb
			return errors.New("large")
		}
		if _, err := r.Values(); err != nil {
			return err
		}
	}
}

// Cut anywhere but between two variables, a file is refused, and the message
// says that it was cut.
func TestCut(t *testing.T) {
	for _, m := range makers() {
		a := m.matrix("ff", uint32(Uint8), []uint32{5, 20}, miUINT8, bytes.Repeat([]byte{1, 2, 3, 250}, 25))
		for _, element := range [][]byte{a, m.packed(t, a)} {
			b := m.file(element, element)
			if err := read(b); err != nil {
				t.Fatal(err)
			}
			for n := range b {
				err := read(b[:n])
				if n == headerBytes || n == headerBytes+len(element) {
					if err != nil {
						t.Errorf("whole variables, %d bytes: %v", n, err)
					}
					continue
				}
				if err == nil || n > headerBytes && !strings.Contains(err.Error(), "the file ends too soon") {
					t.Errorf("cut to %d bytes of %d: %v", n, len(b), err)
				}
			}
		}
	}
}

func TestDamaged(t *testing.T) {
	m := maker{binary.LittleEndian}
	good := m.matrix("ff", uint32(Uint8), []uint32{2, 4}, miUINT8, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	packed := m.packed(t, good)
	flip := func(b []byte, at int, mask byte) []byte {
		b = slices.Clone(b)
		b[at] ^= mask
		return b
	}
	version := m.file(good)
	version[124], version[125] = 0, 2
	for name, tt := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":             {nil, "not a MAT-file of level 5"},
		"another file":      {bytes.Repeat([]byte("JFIF"), 90), `it begins with "JFIFJFIF"`},
		"level 4":           {append([]byte{0, 0, 0, 0, 28, 0, 0, 0}, make([]byte, 300)...), "as in level 4"},
		"version 7.3":       {version, "version 7.3 (HDF5), expected level 5"},
		"other version":     {flip(m.file(good), 124, 7), "version 0x0107"},
		"no variable":       {m.file(m.element(miDOUBLE, make([]byte, 8))), "element at offset 128: an element of type 9, expected a variable"},
		"small variable":    {m.file(m.element(miMATRIX, []byte{1})), "a small element of type 14"},
		"flags":             {m.file(flip(good, 8, 1)), "its flags: data of type 7"},
		"sizes":             {m.file(m.matrix("ff", 9, []uint32{2}, miUINT8, []byte{1, 2})), "its sizes: 4 bytes"},
		"too many values":   {m.file(m.matrix("ff", 9, []uint32{1 << 20, 1 << 20}, miUINT8, []byte{1, 2})), "more than 2147483648 values"},
		"negative size":     {m.file(m.matrix("ff", 9, []uint32{1<<32 - 1, 0}, miUINT8, nil)), "more than 2147483648 values"},
		"long name":         {m.file(m.matrix(strings.Repeat("f", 2000), 9, []uint32{1, 1}, miUINT8, []byte{1})), "its name: 2000 bytes, expected at most 1024"},
		"fewer values":      {m.file(m.matrix("ff", 9, []uint32{2, 4}, miUINT8, make([]byte, 7))), "ff (2×4 uint8): 7 bytes of data of type 2 do not fit its sizes"},
		"values of no type": {m.file(m.matrix("ff", 9, []uint32{2, 4}, 77, make([]byte, 8))), "of type 77 do not fit"},
		"more than values":  {m.file(append(m.u32(miMATRIX, uint32(len(good))), append(good[8:], make([]byte, 8)...)...)), "8 more bytes than its values"},
		"too short inside":  {m.file(append(m.u32(miMATRIX, uint32(len(good)-16)), good[8:]...)), "it ends within its own parts"},
		"not zlib":          {m.file(m.element(miCOMPRESSED, make([]byte, 64))), "zlib: invalid header"},
		"zlib checksum":     {m.file(flip(packed, len(packed)-1, 1)), "zlib: invalid checksum"},
		"zlib cut inside":   {m.file(append(m.u32(miCOMPRESSED, uint32(len(packed)-8-9)), packed[8:len(packed)-9]...)), "it ends within its own parts"},
		"zlib of no matrix": {m.file(m.packed(t, m.element(miUINT8, make([]byte, 16)))), "a compressed element of type 2"},
		"zlib with more":    {m.file(m.packed(t, append(slices.Clone(good), 1))), "more bytes than its values"},
	} {
		if err := read(tt.b); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestBytes reads what Values reads, in parts; damage is told before the end.
func TestBytes(t *testing.T) {
	m := maker{binary.LittleEndian}
	for _, n := range []int{3, 8, 13, 70_000} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(i * i)
		}
		a := m.matrix("x", uint32(Uint8), []uint32{1, uint32(n)}, miUINT8, want)
		for name, b := range map[string][]byte{"plain": a, "packed": m.packed(t, a)} {
			r, err := NewReader(bytes.NewReader(m.file(b, a)))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // and goes on to the next variable
				if _, err := r.Next(); err != nil {
					t.Fatal(err)
				}
				in, err := r.Bytes()
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %d: %d bytes, %v", name, n, len(got), err)
				}
			}
			for _, damaged := range [][]byte{b[:len(b)-9], append(slices.Clone(b[:len(b)-4]), 1, 2, 3, 4)} {
				if name == "plain" && len(damaged) == len(b) {
					continue // nothing checks it
				}
				if err := readBytes(m.file(damaged)); err == nil || !strings.Contains(err.Error(), "element at offset 128: ") {
					t.Errorf("%s, %d, damaged: %v", name, n, err)
				}
			}
		}
	}
	if err := readBytes(m.file(m.matrix("x", uint32(Double), []uint32{1, 1}, miDOUBLE, make([]byte, 8)))); err == nil || !strings.Contains(err.Error(), "x (1×1 double), stored as type 9, expected unsigned bytes") {
		t.Errorf("doubles: %v", err)
	}
}

// readBytes reads all variables of a file as bytes.
func readBytes(b []byte) error {
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		in, err := r.Bytes()
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, in); err != nil {
			return err
		}
	}
}

// real is a path under the shared data, which is not part of the repository.
func real(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", path))
	if err != nil {
		t.Skipf("needs real data, which are no part of the repository: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// Files that MATLAB and SciPy wrote, one of them compressed.
func TestRealFiles(t *testing.T) {
	for path, want := range map[string]struct {
		text  string
		first []float64
	}{
		"frey/frey_rawface.mat":            {"ff (560×1965 uint8)", []float64{0x51, 0x88, 0xa7, 0xb9}},
		"svhn/train_first1083_X_32x32.mat": {"X (32×32×3×1083 uint8)", nil},
	} {
		t.Run(path, func(t *testing.T) {
			r, err := NewReader(real(t, path))
			if err != nil {
				t.Fatal(err)
			}
			v, err := r.Next()
			if err != nil || v.String() != want.text || v.Offset != headerBytes {
				t.Fatalf("%v at %d, %v, want %s", v, v.Offset, err, want.text)
			}
			got, err := r.Values()
			if err != nil || len(got) != v.Len() || !slices.Equal(got[:len(want.first)], want.first) {
				t.Errorf("%d values, %v", len(got), err)
			}
			if v, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("more: %v, %v", v, err)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	for _, m := range makers() {
		a := m.matrix("ff", uint32(Uint8), []uint32{2, 3}, miUINT8, []byte{1, 2, 3, 4, 5, 6})
		f.Add(m.file(a, m.packed(f, a)))
		f.Add(m.file(m.matrix("x", uint32(Double), []uint32{1, 1}, miINT16, []byte{1, 2})))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, err := range []error{read(b), readBytes(b)} {
			if err != nil && err.Error() == "" {
				t.Fatal("an error without words")
			}
		}
	})
}
