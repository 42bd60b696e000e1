// Command train trains an energy-based latent variable model on one or many
// ranks and writes a run directory.
package main

import (
	"context"
	"os"

	"ebtrain/trainer/job"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	os.Exit(job.Exit("train", err, os.Stderr))
}
