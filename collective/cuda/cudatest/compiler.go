package cudatest

import (
	"os"
	"testing"

	"ebtrain/collective/cuda"
)

// CompilerVariable is set, to anything, where tests shall open a real NVRTC, as .ci/nvrtc-check
// does. A process keeps the libraries that it has opened, so those tests run in
// processes of their own, without a Machine.
const CompilerVariable = "EBTRAIN_TEST_NVRTC"

// NeedCompiler skips a test where no real NVRTC is to be opened, and says which it is.
func NeedCompiler(t testing.TB) (version string) {
	t.Helper()
	if os.Getenv(CompilerVariable) == "" {
		t.Skipf("%s is not set: what NVRTC makes of kernels is not seen (make nvrtc-check fetches one and sets it)", CompilerVariable)
	}
	version, err := cuda.CompilerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version
}
