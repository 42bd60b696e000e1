// Package safetensors reads and writes the safetensors format: named, typed,
// dense tensors in one file that any safetensors library can open.
//
//	u64 little-endian   length n of the header
//	n bytes             header: a JSON object, padded with spaces
//	the rest            the tensors' bytes, little-endian, row-major, without gaps
//
// The reader is strict: unknown types, sizes that disagree with shapes,
// overlapping or gapped offsets, duplicate names and left-over bytes are
// errors that name the tensor and the offset. The writer is deterministic: the
// same tensors give the same bytes. Tensors lie in the order of falling element
// size, then rising name, and data starts at a multiple of 8, so each tensor is
// aligned for its type.
//
// A File is immutable and may be read from any goroutine. A Writer belongs to
// one goroutine. Format: https://github.com/huggingface/safetensors (README,
// section Format).
package safetensors

// maxHeader limits the header's length in bytes; it is the limit of the
// format's first implementation.
const maxHeader = 100_000_000

// metadataKey is the one header key that is not a tensor.
const metadataKey = "__metadata__"

// DType is an element type, spelled as in the header.
type DType string

// Element types of the format that are read and written here.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U64  DType = "U64"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL"
)

// Size is the number of bytes of one element, 0 for an unknown type.
func (d DType) Size() int {
	switch d {
	case F64, I64, U64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case I8, U8, Bool:
		return 1
	}
	return 0
}

// Info describes one tensor. Shape is row-major, nil or empty for a scalar;
// Begin and End are byte offsets from the start of the data section.
type Info struct {
	Name       string
	DType      DType
	Shape      []int64
	Begin, End int64
}

// Bytes is the tensor's length in bytes.
func (i Info) Bytes() int64 { return i.End - i.Begin }

// Elems is the number of elements.
func (i Info) Elems() int64 { return i.Bytes() / int64(i.DType.Size()) }
