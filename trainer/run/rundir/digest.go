package rundir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Canonical is v as JSON in one form only: keys sorted, no space, numbers as
// encoding/json writes them. Equal values give equal bytes, whatever the order
// of a struct's fields or of a map.
func Canonical(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	tree, err := decode(b)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// Digest names the settings v: "sha256:" and the hash of Canonical(v). Give it
// the fields that define the computation and no others: not paths, not the
// world size, not how often to log.
func Digest(v any) (string, error) {
	b, err := Canonical(v)
	if err != nil {
		return "", fmt.Errorf("digest of the settings: %w", err)
	}
	return digestOf(b), nil
}

func digestOf(canonical []byte) string {
	h := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(h[:])
}

// Differences lists where two JSON values differ, sorted, in words:
// "adam.lr: was 0.0003, now 0.001".
func Differences(was, now json.RawMessage) ([]string, error) {
	a, err := flatten(was)
	if err != nil {
		return nil, err
	}
	b, err := flatten(now)
	if err != nil {
		return nil, err
	}
	var out []string
	for key, old := range a {
		if v, ok := b[key]; !ok {
			out = append(out, fmt.Sprintf("%s: was %s, now absent", key, old))
		} else if v != old {
			out = append(out, fmt.Sprintf("%s: was %s, now %s", key, old, v))
		}
	}
	for key, v := range b {
		if _, ok := a[key]; !ok {
			out = append(out, fmt.Sprintf("%s: was absent, now %s", key, v))
		}
	}
	slices.Sort(out)
	return out, nil
}

// flatten maps the dotted path of every leaf of b to its JSON.
func flatten(b []byte) (map[string]string, error) {
	tree, err := decode(b)
	if err != nil {
		return nil, err
	}
	leaves := map[string]string{}
	return leaves, walk(tree, "", leaves)
}

func walk(v any, path string, leaves map[string]string) error {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		for key, child := range m {
			if err := walk(child, path+"."+key, leaves); err != nil {
				return err
			}
		}
		return nil
	}
	b, err := json.Marshal(v)
	leaves[strings.TrimPrefix(path, ".")] = string(b)
	return err
}

// decode keeps numbers as they are written.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}
