package ckpt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// LearnedDigest names what the checkpoint at path, the folder itself, has learned: its
// weights, and the state of layers that goes with them, without that of the optimisers. It
// reads state.json alone, which has the checksums of all files.
func LearnedDigest(path string) (string, error) {
	m, err := readManifest(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, group := range []string{Weights, Buffers} {
		fmt.Fprintf(h, "%s %s\n", group, m.Files[group+suffix].SHA256) // a hash never fails to take a write
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
