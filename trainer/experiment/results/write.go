package results

import (
	"fmt"
	"path/filepath"
	"strings"

	"ebtrain/data/atomicfile"
)

// Write writes the results of sheets into the file at path, and their plots and
// pictures into the folder of the same name beside it. So many other experiments were not
// begun, and are only counted.
func Write(path string, sheets []*Sheet, others int) error {
	folder := strings.TrimSuffix(path, filepath.Ext(path))
	if err := atomicfile.MakeDir(folder); err != nil {
		return fmt.Errorf("the folder of the plots: %w", err)
	}
	p := &page{}
	p.add("# Results\n\nWritten by `experiment report` from the cells of the experiments; do not edit.\nNumbers are mean ± standard deviation over seeds.\n\n")
	p.overview(sheets)
	if others > 0 {
		p.add("\n%s.\n", NotBegun(others))
	}
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

// NotBegun is what is said of so many experiments of which there is no cell.
func NotBegun(n int) string {
	if n == 1 {
		return "1 experiment is not begun: experiment list shows it"
	}
	return fmt.Sprintf("%d experiments are not begun: experiment list shows them", n)
}
