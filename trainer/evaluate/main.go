// Command evaluate measures a trained model on a split of a data set.
package main

import (
	"context"
	"os"

	"ebtrain/launch/cliflag"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	os.Exit(cliflag.Exit("evaluate", err, os.Stderr))
}
