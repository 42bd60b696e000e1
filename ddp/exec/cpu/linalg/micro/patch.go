//go:build (amd64 || arm64) && !noasm

package micro

// patch takes a micro-tile that is cut on the right in place of C, for kernels that store
// whole vectors.
type patch struct {
	c   [96]float32
	off [MaxMR]int
}

// of is t with the patch in place of C, its rows so many columns wide.
func (p *patch) of(t *Tile, width int) Tile {
	for r := range t.Rows {
		p.off[r] = r * width
	}
	u := *t
	u.C, u.Off, u.Cols, u.Add = p.c[:], &p.off, width, false
	return u
}

// copy brings to C what there is of it.
func (p *patch) copy(t *Tile, width int) {
	for r := range t.Rows {
		row := t.C[t.Off[r]:][:t.Cols]
		for j, v := range p.c[r*width:][:t.Cols] {
			if t.Add {
				row[j] += v
			} else {
				row[j] = v
			}
		}
	}
}
