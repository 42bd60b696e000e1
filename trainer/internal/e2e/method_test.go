package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMethodIsOneLine adds a method to the programs by one line in the list of
// methods (and the import that goes with it), and uses it as a user would.
func TestMethodIsOneLine(t *testing.T) {
	long(t)
	s := newSite(t)
	s.withMethod("ebtrain/trainer/internal/toy")
	const data = "synth:train=64,val=16,test=32"
	args := func(out string, more ...string) []string {
		return append([]string{"train", "--preset", "toy-any", "--data", data, "--threads", "1", "--samples", "4", "--toy-lr", "0.01", "--out", out}, more...)
	}
	s.must(args("alone", "--steps", "10")...)
	s.must(on(2, args("two", "--steps", "10"))...)
	s.close("alone", "two", rounding)
	if l := s.losses("alone"); l[9]["loss"] >= l[0]["loss"] || len(l[0]) != 2 {
		t.Errorf("want a loss that falls, and the gradient's norm, got %v … %v", l[0], l[9])
	}
	t.Run("resume", func(t *testing.T) {
		s.t = t
		s.must(on(2, args("again", "--steps", "5"))...)
		s.must(on(2, []string{"train", "--resume", "--out", "again", "--steps", "10"})...)
		s.close("two", "again", 0)
	})
	t.Run("use", func(t *testing.T) {
		s.t = t
		s.must("sample", "--run", "two", "--n", "4", "--out", "grid.png")
		s.picture("grid.png")
		var r struct {
			RMSE, LL *float64
			Energies []struct{ Of string }
		}
		if err := json.Unmarshal([]byte(s.must("evaluate", "--run", "two", "--json").stdout), &r); err != nil || r.RMSE != nil || r.LL == nil || len(r.Energies) != 3 {
			t.Errorf("want a likelihood, energies of data, samples and noise, and no reconstruction, got %+v, %v", r, err)
		}
		s.givenLatents("two", data)
	})
	t.Run("settings", func(t *testing.T) {
		s.t = t
		help := s.must("train", "--algo", "toy", "--help").stdout
		if !strings.Contains(help, "--toy-lr") || !strings.Contains(help, "Toys:") || strings.Contains(help, "--latent") || strings.Contains(help, "--net string") {
			t.Errorf("want the toy's settings alone, got\n%s", help)
		}
		for _, c := range []struct{ args, want string }{
			{"--toy-lr 0", "want --toy-lr above 0"},
			{"--toy-lr 2", "a toy breaks at a --toy-lr of 2"},
			{"--undecoupled", "--undecoupled is a setting of --algo bidvl, and --algo toy has none of that name"},
			{"--net conv32", "--net is a setting of --algo bidvl, lebm, vae or sngan, and --algo toy has none of that name (see train --preset toy-any --help)"},
		} {
			e := s.run(append(args("bad"), strings.Fields(c.args)...)...)
			if e.code != 2 || !strings.Contains(e.stderr, c.want) {
				t.Errorf("%s: want exit 2 and %q, got %v", c.args, c.want, e)
			}
		}
		if e := s.run("train", "--resume", "--out", "two", "--algo", "bidvl"); e.code != 2 || !strings.Contains(e.stderr, "the run in two has --algo toy, not --algo bidvl") {
			t.Errorf("a resume as another method: %v", e)
		}
	})
}

// withMethod makes the site's programs anew, with a method more: the list of
// methods is the tree's, with one line and its import.
func (s *site) withMethod(path string) {
	s.t.Helper()
	const list = "../../settings/methods.go"
	text, err := os.ReadFile(list)
	if err != nil {
		s.t.Fatal(err)
	}
	name := filepath.Base(path)
	more := strings.Replace(string(text), "import (\n", "import (\n\t\""+path+"\"\n", 1)
	more = strings.Replace(more, ".Method(),\n}", ".Method(),\n\t"+name+".Method(),\n}", 1)
	if strings.Count(more, "\n") != strings.Count(string(text), "\n")+2 {
		s.t.Fatalf("%s is not as this test expects it", list)
	}
	abs, err := filepath.Abs(list)
	if err != nil {
		s.t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {abs: s.path("methods.go")}})
	if err != nil {
		s.t.Fatal(err)
	}
	for file, content := range map[string][]byte{"methods.go": []byte(more), "overlay.json": overlay} {
		if err := os.WriteFile(s.path(file), content, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	s.bin = s.path("bin")
	args := append(buildFlags(), "-overlay", s.path("overlay.json"), "-o", s.bin+"/")
	for _, p := range []string{"launch/ddplaunch", "trainer/train", "trainer/sample", "trainer/evaluate"} {
		args = append(args, "ebtrain/"+p)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
