package trained

import (
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
	"ebtrain/trainer/algo"
)

// Points says whether a model's samples are points: vectors, of any number of values.
func Points(in algo.Inputs) bool { return !Sentences(in) && !Pictures(in) }

// ColumnsOf are the columns of a model's points: those of the table that it was trained on,
// or, without any, their numbers.
func ColumnsOf(in algo.Inputs, table []data.Column) []data.Column {
	if table != nil {
		return table
	}
	columns := make([]data.Column, in.Shape.Len())
	for i := range columns {
		columns[i] = data.Column{Name: strconv.Itoa(i), SD: 1}
	}
	return columns
}

// WriteNumbers writes points (n, d) as numbers into a file, which it replaces, as their table
// had them: text with a row for each, below the names of the columns where these are more
// than numbers, or an array of NumPy's of float64, by the end of the file's name.
func WriteNumbers(path string, x []float32, columns []data.Column) error {
	write := writeText(',')
	switch ext := filepath.Ext(path); ext {
	case ".tsv":
		write = writeText('\t')
	case ".npy":
		write = writeArray
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := write(b, x, columns); err != nil {
			return err
		}
		return b.Flush()
	})
}

func writeText(comma rune) func(w io.Writer, x []float32, columns []data.Column) error {
	return func(w io.Writer, x []float32, columns []data.Column) error {
		out := csv.NewWriter(w)
		out.Comma = comma
		row, named := make([]string, len(columns)), false
		for i, c := range columns {
			row[i], named = c.Name, named || c.Name != strconv.Itoa(i)
		}
		if named {
			if err := out.Write(row); err != nil {
				return err
			}
		}
		for at := 0; at < len(x); at += len(columns) {
			for i, c := range columns {
				row[i] = c.Text(x[at+i])
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	}
}

// writeArray writes a .npy file of version 1, whose header is of a multiple of 64 bytes
// (numpy.lib.format).
func writeArray(w io.Writer, x []float32, columns []data.Column) error {
	const begin = "\x93NUMPY\x01\x00"
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", len(x)/len(columns), len(columns))
	header += strings.Repeat(" ", 63-(len(begin)+2+len(header))%64) + "\n"
	b := append([]byte(begin), byte(len(header)), byte(len(header)>>8))
	if _, err := w.Write(append(b, header...)); err != nil {
		return err
	}
	value := make([]byte, 8)
	for i, v := range x {
		binary.LittleEndian.PutUint64(value, math.Float64bits(columns[i%len(columns)].Original(v)))
		if _, err := w.Write(value); err != nil {
			return err
		}
	}
	return nil
}
