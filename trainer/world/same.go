package world

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/launch/cliflag"
)

// dataFlag is the flag whose content is compared in place of its value.
const dataFlag = "data"

// Same compares the flags of all ranks, and what the data hold, before any of them has
// allocated anything. Flags ofEachHost may differ: where things are, and how a host
// works. All ranks get the same error: the first that differs from rank 0, each flag
// and both values.
func Same(ctx context.Context, rank int, flags map[string]string, ofEachHost []string, dataDigest string, swap Exchange) error {
	mine := map[string]string{}
	for name, value := range flags {
		if name != dataFlag && !slices.Contains(ofEachHost, name) {
			mine[name] = value
		}
	}
	mine[dataFlag] = dataDigest
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	sums, err := swap(ctx, "digest of the settings", sum[:])
	if err != nil {
		return err
	}
	odd := slices.IndexFunc(sums, func(s []byte) bool { return !bytes.Equal(s, sums[0]) })
	if odd < 0 {
		return nil
	}
	if rank != 0 && rank != odd { // two of perhaps thousands are enough
		text = nil
	}
	texts, err := swap(ctx, "settings", text)
	if err != nil {
		return err
	}
	var first, other map[string]string
	if err := json.Unmarshal(texts[0], &first); err != nil {
		return fmt.Errorf("settings of rank 0: %w", err)
	}
	if err := json.Unmarshal(texts[odd], &other); err != nil {
		return fmt.Errorf("settings of rank %d: %w", odd, err)
	}
	return cliflag.Usage("%s: give the same settings to all ranks", strings.Join(differences(first, odd, other), "; "))
}

// differences says where the flags of rank odd are not those of rank 0.
func differences(first map[string]string, odd int, other map[string]string) []string {
	var all []string
	for name, a := range first {
		b, ok := other[name]
		switch {
		case ok && a == b:
		case name == dataFlag:
			all = append(all, fmt.Sprintf("--data holds other samples on rank 0 (digest %s) than on rank %d (%s)", data.Brief(a), odd, data.Brief(b)))
		case !ok:
			all = append(all, fmt.Sprintf("rank 0 has --%s %s and rank %d has no such flag", name, a, odd))
		default:
			all = append(all, fmt.Sprintf("--%s is %s on rank 0 and %s on rank %d", name, a, b, odd))
		}
	}
	for name, b := range other {
		if _, ok := first[name]; !ok {
			all = append(all, fmt.Sprintf("rank %d has --%s %s and rank 0 has no such flag", odd, name, b))
		}
	}
	slices.Sort(all)
	return all
}
