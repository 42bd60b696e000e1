package data

import "strings"

// Brief is a digest as people compare it: the beginning of a hash, and all of a
// description, whose end is what differs.
func Brief(digest string) string {
	const shown = 15
	if strings.HasPrefix(digest, "sha256:") && len(digest) > shown {
		return digest[:shown] + "…"
	}
	return digest
}
