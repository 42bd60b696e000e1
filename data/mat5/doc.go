// Package mat5 reads real numeric arrays of MAT-files of level 5, what MATLAB's
// save writes with -v6 and, zlib-compressed, with -v7.
//
//	128 bytes   header: text, version 0x0100, "MI" in the writer's byte order
//	the rest    elements: a tag (type, length) and that many bytes
//
// A variable is an element of type miMATRIX, or a compressed one that holds
// such an element. In it are, each with a tag, its flags, sizes, name and
// values. Values may be stored in a smaller type than the array's class.
//
// The reader is strict and reads from front to back: sizes that disagree, a
// file that ends too soon and damaged compression are errors that name the
// offset. It allocates for what is there, not for what a tag promises. Arrays
// of other classes (cells, structures, text, sparse) are listed but not read.
//
// A Reader belongs to one goroutine. Format: "MAT-File Format", The MathWorks,
// chapter 1, "Level 5 MAT-File Format".
package mat5

import "fmt"

// Class is the class of an array, as the format numbers them.
type Class uint8

// Classes of numeric arrays.
const (
	Double Class = 6
	Single Class = 7
	Int8   Class = 8
	Uint8  Class = 9
	Int16  Class = 10
	Uint16 Class = 11
	Int32  Class = 12
	Uint32 Class = 13
	Int64  Class = 14
	Uint64 Class = 15
)

var classNames = []string{
	1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", Double: "double", Single: "single",
	Int8: "int8", Uint8: "uint8", Int16: "int16", Uint16: "uint16", Int32: "int32", Uint32: "uint32",
	Int64: "int64", Uint64: "uint64",
}

// String is MATLAB's name of the class.
func (c Class) String() string {
	if int(c) < len(classNames) && classNames[c] != "" {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Numeric says whether arrays of the class have one number in each place.
func (c Class) Numeric() bool { return c >= Double && c <= Uint64 }

// Variable is what a file says of one of its variables before the values.
type Variable struct {
	Name    string
	Class   Class
	Complex bool
	// Dims are its sizes, two or more; values lie with the first index running
	// fastest.
	Dims   []int
	Offset int64 // of its element in the file
}

// Len is the number of values.
func (v Variable) Len() int {
	n := 1
	for _, d := range v.Dims {
		n *= d
	}
	return n
}

// String is for messages: "ff (560×1965 uint8)".
func (v Variable) String() string {
	text := v.Name + " ("
	for i, d := range v.Dims {
		if i > 0 {
			text += "×"
		}
		text += fmt.Sprint(d)
	}
	text += " "
	if v.Complex {
		text += "complex "
	}
	return text + v.Class.String() + ")"
}

// Types of elements.
const (
	miINT8       = 1
	miUINT8      = 2
	miINT16      = 3
	miUINT16     = 4
	miINT32      = 5
	miUINT32     = 6
	miSINGLE     = 7
	miDOUBLE     = 9
	miINT64      = 12
	miUINT64     = 13
	miMATRIX     = 14
	miCOMPRESSED = 15
	miUTF8       = 16
)

// sizes are the bytes of one value of the types that values are stored in.
var sizes = map[uint32]int{
	miINT8: 1, miUINT8: 1, miINT16: 2, miUINT16: 2, miINT32: 4, miUINT32: 4,
	miSINGLE: 4, miDOUBLE: 8, miINT64: 8, miUINT64: 8,
}

// Limits of what a variable may say of itself.
const (
	maxName  = 1 << 10 // bytes; MATLAB's longest name has 63
	maxDims  = 32
	maxElems = 1 << 31 // SVHN's largest part has 1.6e9
)
