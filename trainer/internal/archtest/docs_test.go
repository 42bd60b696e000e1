package archtest

import (
	"strings"
	"testing"
)

// page is a papers' page with sections, a table of one and numbered points.
const page = "# The papers\n\n## 1. A\n\n### 1.2 B\n(iii) the third, **Text**, Theorem 2\n\n### 1.3 C\n\n## 7. D\n1. one\n2. two\n"

// cite is a comment that cites the page (whose name is taken apart because this file is
// checked too).
func cite(rest string) string { return "// As in ALGO" + "RITHMS.md" + rest + "\n" }

func TestDocs(t *testing.T) {
	const decide = "DES" + "IGN.md"
	tests := []struct {
		name string
		path string
		text string
		want []string // parts of the one violation; none: allowed
	}{
		{"a section", "ddp/a.go", cite(" §1.2."), nil},
		{"the third point of a section", "ddp/a.py", "# " + cite(" §7.2]"), nil},
		{"two sections", "ddp/a.go", cite(" §1.2 (iii), §1.3 and §7]"), nil},
		{"over the end of a line", "ddp/a.go", cite("\n// §1.2, Theorem 2]"), nil},
		{"no such section", "ddp/a.go", cite(" §1.4]"), []string{"ddp/a.go:3:", "has no §1.4"}},
		{"no such second section", "ddp/a.go", cite(" §1.2, §2.2"), []string{"has no §2.2"}},
		{"no such point", "ddp/a.go", cite(" §7.3"), []string{"has no §7.3"}},
		{"no such part", "ddp/a.go", cite(" §1.2 (iv)"), []string{`§1.2 of`, `does not have "(iv)"`}},
		{"no such theorem", "ddp/a.go", cite(" §1.3, Theorem 2"), []string{`does not have "Theorem 2"`}},
		{"what follows is no part", "ddp/a.go", cite(" §1.3; Theorem 9 is of another"), nil},
		{"no section", "ddp/a.go", cite(": the whole"), []string{"without a section"}},
		{"another spelling", "ddp/a.go", "// algo" + "rithms.md §1.2\n", []string{"the page is called"}},
		{"a document names the page", "ddp/x.md", cite(" alone"), nil},
		{"decisions of the room", "ddp/graph/a.go", "// see " + decide + ".\n", nil},
		{"decisions by title", "ddp/graph/a.go", "// (" + decide + ", \"Nobody wakes\n// threads\").\n", nil},
		{"decisions of another room, by title", "data/a.go", "// (ddp/" + decide + ", \"Nobody wakes threads\").\n", nil},
		{"a title that is gone", "ddp/graph/a.go", "// (" + decide + ", \"All wake\").\n", []string{"ddp/graph/a.go:3:", `does not have "All wake"`}},
		{"a room without decisions", "data/a.go", "// see " + decide + ".\n", []string{"is not in this folder"}},
		{"a document speaks of decisions", "data/x.md", "`" + decide + "` of each room\n", nil},
		{"a link", "ddp/x.md", "[a](y.md), [b](../trainer/method#k), [c](#to-be-read), [d](https://x.org/a)\n# To be, read\n", nil},
		{"a link to another's heading", "data/x.md", "[a](../ddp/y.md#nobody-wakes-threads)\n", nil},
		{"a link in code", "ddp/x.md", "```\n[a](z.md)\n```\n`[b](z.md)`\n", nil},
		{"a dead link", "ddp/x.md", "`code`\n\n![a](z.png)\n", []string{"ddp/x.md:3:", "z.png", "not in the tree"}},
		{"a dead heading", "ddp/x.md", "[a](y.md#nobody)\n", []string{"has no heading"}},
		{"a link out of the tree", "ddp/x.md", "[a](../../x.md)\n", []string{"not in the tree"}},
		{"what programs put out", "ddp/testdata/x.md", "[a](z.md)\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{papers: page, "ddp/" + decide: "# Decisions\n\n**Nobody\nwakes threads.** Since.\n", "ddp/y.md": "# Nobody: wakes threads\n"}
			files[tt.path] = tt.text
			if strings.HasSuffix(tt.path, ".go") {
				files[tt.path] = lib("a") + tt.text
			}
			got, err := Check(tree(t, files))
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == nil {
				if len(got) != 0 {
					t.Errorf("violations %v, want none", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d violations %v, want one with %q", len(got), got, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(got[0].String(), part) {
					t.Errorf("violation %q does not have %q", got[0], part)
				}
			}
		})
	}
}
