package importer

import (
	"context"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// Named is a source and the split it becomes.
type Named struct {
	Split  string
	Source data.Source
}

// Copy makes a Set of sources that have the same schema, for example the
// built-in pictures.
func Copy(sources []Named) *Set {
	s := &Set{Preprocessing: shard.Preprocessing{"importer": "copy"}}
	for _, n := range sources {
		s.Schema = n.Source.Schema()
		s.Preprocessing["copy of "+n.Split] = n.Source.Digest()
		s.Splits = append(s.Splits, Split{Name: n.Split, Count: n.Source.Len(), Items: sourceItems(n.Source)})
	}
	return s
}

// sourceItems are the samples of a source, block by block.
func sourceItems(src data.Source) originals {
	return reading(func(ctx context.Context, _ *budget, give func(Item) error) error {
		size := src.Schema().SampleBytes()
		for i, span := range src.Layout().Spans() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var b data.Block // each its own: the items keep it
			if err := src.ReadBlock(i, &b); err != nil {
				return err
			}
			for j := range span.N {
				pixels := b.Values[j*size : (j+1)*size]
				it := Item{Label: b.Labels[j], Values: func(context.Context, *budget) ([]byte, error) { return pixels, nil }}
				if err := give(it); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
