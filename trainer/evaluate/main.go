// Command evaluate measures a trained model on a split of a data set.
package main

import (
	"context"
	"os"

	"ebtrain/ddp/exec/cpu"
	"ebtrain/launch/cliflag"
)

func main() {
	cpu.ShortSpins()
	err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(cliflag.Exit("evaluate", err, os.Stderr))
}
