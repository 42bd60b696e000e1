package env

import (
	"fmt"
	"strconv"
	"strings"
)

// StepHosts are the names of the hosts of the SLURM step that environ describes,
// or of its job if it is in no step, in SLURM's order; nil outside of SLURM.
func StepHosts(environ []string) ([]string, error) {
	v := newVars(environ)
	for _, key := range []string{"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"} {
		if list := v.m[key]; list != "" {
			hosts, err := ExpandHosts(list)
			if err != nil {
				return nil, fmt.Errorf("%s=%q: %w", key, list, err)
			}
			return hosts, nil
		}
	}
	return nil, nil
}

// ExpandHosts turns SLURM's "n[08-10,12]-ib,login" into n08-ib, n09-ib, n10-ib,
// n12-ib, login. A name may hold several brackets; in one, "000x113" is a box of as
// many dimensions as it has digits, as machines with a torus have it.
func ExpandHosts(list string) ([]string, error) {
	var all []string
	for _, part := range splitOutside(list) {
		names, err := expandName(part)
		if err != nil {
			return nil, err
		}
		if len(all)+len(names) > maxCount {
			return nil, fmt.Errorf("more than %d hosts", maxCount)
		}
		all = append(all, names...)
	}
	return all, nil
}

// splitOutside cuts at the commas that are not in brackets.
func splitOutside(list string) (parts []string) {
	depth, from := 0, 0
	for i, r := range list {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, list[from:i]), i+1
		}
	}
	return append(parts, list[from:])
}

// expandName expands the brackets of one name, from the left.
func expandName(name string) ([]string, error) {
	before, rest, ok := strings.Cut(name, "[")
	if !ok {
		if name == "" || strings.Contains(name, "]") {
			return nil, fmt.Errorf("%q is not a host's name", name)
		}
		return []string{name}, nil
	}
	numbers, after, ok := strings.Cut(rest, "]")
	if !ok {
		return nil, fmt.Errorf("%q has no closing bracket", name)
	}
	tails := []string{""}
	if after != "" {
		var err error
		if tails, err = expandName(after); err != nil {
			return nil, err
		}
	}
	var all []string
	for part := range strings.SplitSeq(numbers, ",") {
		texts, err := expandRange(part)
		if err != nil {
			return nil, err
		}
		if (len(all)/len(tails)+len(texts))*len(tails) > maxCount {
			return nil, fmt.Errorf("more than %d hosts", maxCount)
		}
		for _, text := range texts {
			for _, tail := range tails {
				all = append(all, before+text+tail)
			}
		}
	}
	return all, nil
}

// expandRange turns "08-10" into 08, 09, 10.
func expandRange(s string) ([]string, error) {
	if low, high, ok := strings.Cut(s, "x"); ok {
		return expandBox(low, high)
	}
	low, high, ok := strings.Cut(s, "-")
	if !ok {
		high = low
	}
	a, err1 := strconv.ParseUint(low, 10, 32)
	b, err2 := strconv.ParseUint(high, 10, 32)
	if err1 != nil || err2 != nil || b < a || b-a >= maxCount {
		return nil, fmt.Errorf("%q is not of the form 7 or 08-10", s)
	}
	var all []string
	for n := a; n <= b; n++ {
		all = append(all, fmt.Sprintf("%0*d", len(low), n))
	}
	return all, nil
}

// expandBox turns the corners 00 and 12 of a box into 00, 01, 02, 10, 11, 12: each
// digit, which may also be a letter from A, goes from its one value to its other.
func expandBox(low, high string) ([]string, error) {
	all := []string{""}
	for i := range len(low) {
		if len(high) != len(low) || digit(low[i]) < 0 || digit(high[i]) < digit(low[i]) {
			return nil, fmt.Errorf("%q is not of the form 000x113", low+"x"+high)
		}
		var longer []string
		for _, text := range all {
			for d := digit(low[i]); d <= digit(high[i]); d++ {
				longer = append(longer, text+string(digits[d]))
			}
		}
		if all = longer; len(all) > maxCount {
			return nil, fmt.Errorf("more than %d hosts", maxCount)
		}
	}
	if low == "" {
		return nil, fmt.Errorf("%q is not of the form 000x113", low+"x"+high)
	}
	return all, nil
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func digit(c byte) int { return strings.IndexByte(digits, c) }
