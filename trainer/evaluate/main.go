// Command evaluate measures a trained model on a split of a data set.
package main

import (
	"context"
	"os"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/chosen"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	os.Exit(cliflag.Exit("evaluate", chosen.Misnamed(err), os.Stderr))
}
