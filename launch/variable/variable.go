// Package variable reads variables of an environment that is handed on as a list of
// KEY=value, as os.Environ and exec.Cmd have it. As with package os, the first of
// several entries for a key counts.
package variable

import "strings"

// Get is the value of key, "" if it is not set.
func Get(environ []string, key string) string {
	value, _ := Lookup(environ, key)
	return value
}

// Lookup is the value of key, and whether it is set.
func Lookup(environ []string, key string) (value string, set bool) {
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			return v, true
		}
	}
	return "", false
}
