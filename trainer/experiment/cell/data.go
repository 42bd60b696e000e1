package cell

import (
	"fmt"
	"maps"
	"slices"

	"ebtrain/data"
)

// Data are the digests of what a cell is made of: of each split of the data set that it
// is trained on, and, as NAME/SPLIT, of those that it is compared with. What it does not
// name is not known, as nothing is of cells from before it was kept.
type Data map[string]string

// Other says what is known of both and differs, and how it was; "" if nothing does.
func (d Data) Other(now Data) string {
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if other, known := now[name]; known && other != d[name] {
			return fmt.Sprintf("%s %s", name, data.Brief(d[name]))
		}
	}
	return ""
}
