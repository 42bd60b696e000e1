// Command evaluate measures a trained model on a split of a data set.
package main

import (
	"context"
	"os"

	"ebtrain/trainer/job"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(job.Exit("evaluate", err, os.Stderr))
}
