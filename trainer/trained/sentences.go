package trained

import (
	"context"
	"fmt"
	"strings"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
)

// Sentences says whether a model's samples are sentences.
func Sentences(in algo.Inputs) bool { return in.Words != nil }

// Text is samples of a model of sentences, (n, 1, 1, W) of tokens, a sentence a line.
func Text(t *exec.Tensor, in algo.Inputs) (string, error) {
	var b strings.Builder
	n := t.Type.Shape.At(0)
	x, w := t.F32(), t.Type.Shape.Len()/n
	tokens := make([]int32, w)
	for i := range n {
		for j := range tokens {
			v := int(x[i*w+j])
			if v < 0 || v >= len(in.Words) {
				return "", fmt.Errorf("sample %d has token %d, and the vocabulary %d words", i, v, len(in.Words))
			}
			tokens[j] = int32(v)
		}
		b.WriteString(data.Sentence(in.Words, tokens))
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// WriteText writes samples of a model of sentences into a file, which it replaces.
func WriteText(path string, t *exec.Tensor, in algo.Inputs) (text string, err error) {
	if text, err = Text(t, in); err != nil {
		return "", err
	}
	return text, atomicfile.WriteBytes(path, []byte(text))
}

// Read runs the graph on n sentences: tokens (n, length), padded, and lengths (n), the
// first of which is number first of all that are read.
func (l *Look) Read(ctx context.Context, tokens, lengths []int32, first int64) (exec.Program, error) {
	p, err := l.program(len(lengths))
	if err != nil {
		return nil, err
	}
	if in := p.Input(algo.InputTokens).I32(); len(in) != len(tokens) {
		return nil, fmt.Errorf("%s: %d tokens are not %d sentences of the graph's length", l.name, len(tokens), len(lengths))
	}
	p.each(func(one exec.Program) {
		for name, values := range map[string][]int32{algo.InputTokens: tokens, algo.InputLengths: lengths} {
			if in := one.Input(name); in != nil {
				copy(in.I32(), values)
			}
		}
	})
	l.key(p, first)
	return p, p.run(ctx)
}
