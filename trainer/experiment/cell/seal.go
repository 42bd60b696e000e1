package cell

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// content is what the two files hold. A new field of one must be left out of its JSON where it
// is zero: else what was sealed without it has another sum.
type content interface{ Begun | Measured }

// seal is the checksum of v, which has none yet.
func seal[T content](v T) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var asRead T // as which the sum is made when it is verified
	if err := json.Unmarshal(b, &asRead); err != nil {
		return "", err
	}
	return sum(asRead)
}

// sum is the SHA-256 of the JSON of v, which has no checksum.
func sum[T content](v T) (string, error) {
	b, err := json.Marshal(v)
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:]), err
}

// verify takes the checksum of v, which was read, and reports what is not as it was written:
// it would stand in a report like all else.
func verify[T content](v *T, checksum *string) error {
	want := *checksum
	*checksum = ""
	if want == "" {
		return nil
	}
	got, err := sum(*v)
	if err == nil && got != want {
		err = fmt.Errorf("its SHA-256 is %s, expected %s", got, want)
	}
	return err
}
