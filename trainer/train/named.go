package main

import (
	"strconv"
	"unicode/utf8"
)

// warnNames warns of folders whose names config.json, which is JSON and so UTF-8, cannot
// hold: whoever reads it finds another name there.
func (r *recorder) warnNames() {
	for _, flag := range []string{"data", "from"} {
		if name := r.info.flags[flag]; !utf8.ValidString(name) {
			r.log.Warn("a name is not UTF-8, so config.json cannot hold it: a resume and evaluate have to be told it again, or give a link to it",
				"flag", "--"+flag, "name", strconv.Quote(name))
		}
	}
}
