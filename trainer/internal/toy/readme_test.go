package toy

import (
	"os"
	"strings"
	"testing"
)

// TestTutorial: the code that trainer/method/README.md shows is that of this package.
func TestTutorial(t *testing.T) {
	var code strings.Builder
	for _, name := range []string{"toy.go", "toy_test.go"} {
		code.Write(read(t, name))
	}
	parts := strings.Split(string(read(t, "../../method/README.md")), "```")
	shown := 0
	for i := 1; i < len(parts); i += 2 {
		block, ok := strings.CutPrefix(parts[i], "go\n")
		if !ok {
			continue
		}
		if shown++; !strings.Contains(code.String(), block) {
			t.Errorf("trainer/method/README.md shows what is no part of the toy:\n%s", block)
		}
	}
	if shown == 0 {
		t.Error("trainer/method/README.md shows no code")
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
