package ckpt

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebtrain/data/safetensors"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

const suffix = ".safetensors"

var groupName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// groupOf is the group held by the file called name, "" if name is not the
// name of such a file.
func groupOf(name string) string {
	group, ok := strings.CutSuffix(name, suffix)
	if !ok || !groupName.MatchString(group) {
		return ""
	}
	return group
}

var dtypes = map[graph.DType]safetensors.DType{
	graph.F32:  safetensors.F32,
	graph.F64:  safetensors.F64,
	graph.BF16: safetensors.BF16,
	graph.I32:  safetensors.I32,
	graph.I64:  safetensors.I64,
	graph.U8:   safetensors.U8,
}

// writeGroup writes one safetensors file, fsyncs it, and says what it holds.
func writeGroup(path string, step int64, group []Named) (entry, error) {
	tensors, err := encodeGroup(group)
	if err != nil {
		return entry{}, err
	}
	f, err := os.Create(path)
	if err != nil {
		return entry{}, err
	}
	h := sha256.New()
	buf := bufio.NewWriterSize(io.MultiWriter(f, h), 1<<20)
	err = safetensors.Write(buf, tensors, map[string]string{"step": strconv.FormatInt(step, 10)})
	if err == nil {
		err = buf.Flush()
	}
	var size int64
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = f.Sync()
	}
	return entry{size, hex.EncodeToString(h.Sum(nil))}, errors.Join(err, f.Close())
}

func encodeGroup(group []Named) ([]safetensors.Tensor, error) {
	tensors := make([]safetensors.Tensor, len(group))
	for i, n := range group {
		if n.Name == "" || n.Tensor == nil {
			return nil, fmt.Errorf("tensor %d, %q: needs a name and a tensor", i, n.Name)
		}
		shape := make([]int64, n.Tensor.Type.Shape.Rank())
		for k := range shape {
			shape[k] = int64(n.Tensor.Type.Shape.At(k))
		}
		tensors[i] = safetensors.Tensor{Name: n.Name, DType: dtypes[n.Tensor.Type.DType], Shape: shape, Data: n.Tensor.Bytes()}
	}
	return tensors, nil
}

// decodeGroup makes tensors of the content of a safetensors file, by name.
func decodeGroup(content []byte) ([]Named, error) {
	f, err := safetensors.Parse(content)
	if err != nil {
		return nil, err
	}
	group := make([]Named, 0, len(f.Infos()))
	for _, info := range f.Infos() {
		typ, err := typeOf(info)
		if err != nil {
			return nil, err
		}
		t := exec.NewTensor(typ)
		copy(t.Bytes(), content[f.DataStart()+info.Begin:f.DataStart()+info.End])
		group = append(group, Named{info.Name, t})
	}
	slices.SortFunc(group, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return group, nil
}

func typeOf(info safetensors.Info) (graph.Type, error) {
	if len(info.Shape) > graph.MaxRank {
		return graph.Type{}, fmt.Errorf("tensor %q: %d axes, at most %d are possible", info.Name, len(info.Shape), graph.MaxRank)
	}
	dims := make([]int, len(info.Shape))
	for i, s := range info.Shape {
		dims[i] = int(s)
	}
	for d, name := range dtypes {
		if name == info.DType {
			return graph.T(d, dims...), nil
		}
	}
	return graph.Type{}, fmt.Errorf("tensor %q: element type %s is not one of F32 F64 BF16 I32 I64 U8", info.Name, info.DType)
}
