package results

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ebtrain/data/atomicfile"
)

// Write writes the results of sheets into the file at path, and their plots and
// pictures into the folder of the same name beside it.
func Write(path string, sheets []*Sheet) error {
	folder := strings.TrimSuffix(path, filepath.Ext(path))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("the folder of the plots: %w", err)
	}
	p := &page{}
	p.add("# Results\n\nWritten by `experiment report` from the cells of the experiments; do not edit.\nNumbers are mean ± standard deviation over seeds.\n\n")
	p.overview(sheets)
	for _, s := range sheets {
		if s.Empty() {
			continue
		}
		pictures, err := s.draw(folder)
		if err != nil {
			return err
		}
		if err := p.section(s, pictures); err != nil {
			return err
		}
	}
	return atomicfile.WriteBytes(path, []byte(p.String()))
}
