package main

import "strings"

// normalize lets long flags be written with one dash or two and with '-' or
// '_': "-test_percent=5" becomes "--test-percent=5". Everything after "--" is
// left alone.
func normalize(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		out = append(out, normalizeOne(a))
	}
	return out
}

func normalizeOne(a string) string {
	name := strings.TrimLeft(a, "-")
	dashes := len(a) - len(name)
	if dashes < 1 || dashes > 2 || len(name) < 2 || name[0] >= '0' && name[0] <= '9' || name[0] == '.' {
		return a // a value, a number or -h
	}
	key, value, ok := strings.Cut(name, "=")
	key = "--" + strings.ReplaceAll(key, "_", "-")
	if ok {
		return key + "=" + value
	}
	return key
}
