package env

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestExpandHosts(t *testing.T) {
	for list, want := range map[string]string{
		"n0":                   "n0",
		"n[0-2]":               "n0 n1 n2",
		"n[08-10,12]-ib,login": "n08-ib n09-ib n10-ib n12-ib login",
		"a,b":                  "a b",
		"r[1-2]n[1,3]":         "r1n1 r1n3 r2n1 r2n3",
		"gpu[099-101]":         "gpu099 gpu100 gpu101",
		"[1-2].cluster.org":    "1.cluster.org 2.cluster.org",
		"bgl[00x12]":           "bgl00 bgl01 bgl02 bgl10 bgl11 bgl12",
		"t[00x01,Y0xZ0]":       "t00 t01 tY0 tZ0",
		"n[1,1]":               "n1 n1",
		"rack[1-2]-[08-09]-ib": "rack1-08-ib rack1-09-ib rack2-08-ib rack2-09-ib",
	} {
		if got, err := ExpandHosts(list); err != nil || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, %v, want %s", list, got, err, want)
		}
	}
	for _, bad := range []string{"", "n[", "n[1", "n]", "n[1]]", "n[a-b]", "n[3-1]", "n[1-]", "n[-1]", "a,,b", "n[]", "n[0-99999999]", "n[0-9999]m[0-9999]", "n[[1]]", "n[0x]", "n[x]", "n[00x1]", "n[1x0]", "n[000000x999999Z]", "n[0000000xZZZZZZZ]", "n[a x b]", "n[0-1048575],m"} {
		if got, err := ExpandHosts(bad); err == nil {
			t.Errorf("%q was accepted as %d hosts", bad, len(got))
		}
	}
}

func TestStepHosts(t *testing.T) {
	for environ, want := range map[string]string{
		"": "[]", "SLURM_JOB_NODELIST=n[1-3]": "[n1 n2 n3]", "SLURM_JOB_NODELIST=n[1-3] SLURM_STEP_NODELIST=n[2-3]": "[n2 n3]",
	} {
		if got, err := StepHosts(strings.Fields(environ)); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, %v", environ, got, err)
		}
	}
	if _, err := StepHosts([]string{"SLURM_STEP_NODELIST=n["}); err == nil || !strings.HasPrefix(err.Error(), "SLURM_STEP_NODELIST=") {
		t.Errorf("got %v", err)
	}
}

func FuzzExpandHosts(f *testing.F) {
	f.Add("n[08-10,12]-ib,login")
	f.Add("r[1-2]n[1,3],t[000x113]")
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := ExpandHosts(list)
		if err == nil && (len(hosts) == 0 || len(hosts) > maxCount || slices.Contains(hosts, "")) {
			t.Errorf("%q became %d hosts", list, len(hosts))
		}
	})
}
