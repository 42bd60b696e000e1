// Command train trains an energy-based latent variable model on one or many
// ranks and writes a run directory.
package main

import (
	"context"
	"os"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/task"
)

func main() {
	task.Lead("train")
	err := run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	os.Exit(cliflag.Exit("train", err, os.Stderr))
}
