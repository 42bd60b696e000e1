package cliflag

import "testing"

// TestOneOf: what is most like a word is offered, and all there is where nothing is.
func TestOneOf(t *testing.T) {
	words := []string{"board", "frey", "frey-h", "pictures-long", "pictures-wide"}
	for word, want := range map[string]string{
		"bord":          "did you mean board?",
		"bxxrd":         "did you mean board?",
		"obxyz":         "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"xyzdr":         "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"aoxyz":         "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"baord":         "did you mean board?",
		"fery":          "did you mean frey?",
		"rfey":          "did you mean frey?",
		"frye":          "did you mean frey?",
		"rzey":          "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"zfey":          "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"eryf":          "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"Frey":          "did you mean frey?",
		"freyh":         "did you mean frey or frey-h?",
		"picture-long":  "did you mean pictures-long?",
		"pictures-":     "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"f":             "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"":              "want one of board, frey, frey-h, pictures-long, pictures-wide",
		"pictures-lang": "did you mean pictures-long?",
	} {
		if got := OneOf(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
