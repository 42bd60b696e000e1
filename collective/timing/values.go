package timing

import (
	"math"
	"unsafe"

	"ebtrain/collective"
)

// period is after how many elements the values repeat.
const period = 8

// value is element i of rank r's vector at the start of a batch: 1 to 8.
func value(r, i int) float64 { return float64((r*3+i)%period + 1) }

// Fill writes the start of a batch.
func (b *Batch) Fill() {
	mem := b.Req.Vec.Bytes()
	n := min(period, b.Req.Vec.Len)
	for i := range n {
		b.put(i, value(b.Rank(), i))
	}
	for at := n * b.Req.Vec.Type.Size(); at < len(mem); at *= 2 {
		copy(mem[at:], mem[:at])
	}
}

// wrong counts elements that are not what the batch must leave.
func (b *Batch) wrong() int64 {
	var count int64
	part := b.Req.Vec.Len / b.Size()
	tolerance := map[collective.DType]float64{collective.F32: 1e-5, collective.F64: 1e-13, collective.BF16: 0.04}[b.Req.Vec.Type]
	var wants [period]float64 // of the elements of one part
	for i := range b.Req.Vec.Len {
		if i%part == 0 {
			for k := range wants {
				wants[k] = b.want(k, i/part)
			}
		}
		want := wants[i%period]
		if got := b.get(i); want != 0 && !(math.Abs(got-want) <= tolerance*want) {
			count++
		}
	}
	return count
}

// want is what the batch must leave in the elements of a part that are i modulo
// period, 0 where that is undefined.
func (b *Batch) want(i, part int) float64 {
	switch b.Req.Kind {
	case collective.AllReduce: // the first one sums, the others multiply
		return b.sum(i) * math.Pow(float64(b.Size()), float64(b.Inner-1))
	case collective.ReduceScatter: // each one adds the other ranks' parts
		if part != b.Rank() {
			return 0
		}
		own := value(b.Rank(), i)
		return own + float64(b.Inner)*(b.sum(i)-own)
	case collective.AllGather:
		return value(part, i)
	}
	return value(0, i)
}

func (b *Batch) sum(i int) float64 {
	var s float64
	for r := range b.Size() {
		s += value(r, i)
	}
	return s
}

func (b *Batch) put(i int, x float64) {
	p := unsafe.Add(b.Req.Vec.Ptr, i*b.Req.Vec.Type.Size())
	switch b.Req.Vec.Type {
	case collective.F32:
		*(*float32)(p) = float32(x)
	case collective.F64:
		*(*float64)(p) = x
	case collective.BF16: // 1 to 8 are exact
		*(*uint16)(p) = uint16(math.Float32bits(float32(x)) >> 16)
	}
}

func (b *Batch) get(i int) float64 {
	p := unsafe.Add(b.Req.Vec.Ptr, i*b.Req.Vec.Type.Size())
	switch b.Req.Vec.Type {
	case collective.F32:
		return float64(*(*float32)(p))
	case collective.F64:
		return *(*float64)(p)
	}
	return float64(math.Float32frombits(uint32(*(*uint16)(p)) << 16))
}
