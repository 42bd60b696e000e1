package importer

import (
	"errors"
	"iter"
)

// errStopped says that no more is wanted.
var errStopped = errors.New("stopped")

// sequence is what read gives, one after another; an error of read is the last of it. read
// returns at once what give returns: errStopped, wrapped or not, when no more is wanted.
func sequence[T any](read func(give func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		give := func(v T) error {
			if !yield(v, nil) {
				return errStopped
			}
			return nil
		}
		if err := read(give); err != nil && !errors.Is(err, errStopped) {
			var none T
			yield(none, err)
		}
	}
}
