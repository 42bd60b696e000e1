package kernel

import "fmt"

// A block of contract reads so many pixels of the large image at most, some three
// fragments of 16 for each warp, as far as their products fit into shared memory.
const contractPixels, contractShared = 384, 47 << 10

// contract makes the small image. Of a warp, a fragment of 16 pixels of the large image is
// a's rows, straight from memory, its channels are added up, and c's columns are the taps:
//
//	p[k, pixel] = Σₘ large[pixel, m] · w[m,k]           in shared memory, float32
//	small[n,i,j,c] = Σf,e p[(f,e,c), pixel under the tap]    in order, rounded once
//
// A tile reads a border of pixels that its neighbours read, too. Of 32 channels a thread
// has the 8 from 8t on, 16 bytes, which are in order its words of two fragments; of what is
// left it has 4, then 2.
func (k *few) contract() ([]Launch, error) {
	fragments, steps := ceil(k.taps(), 8), ceil(k.many, 16)
	width, pitch := k.contractTile(fragments * steps * 256)
	pixels := (k.th + k.kh - 1) * width
	halo := width != k.lw || k.tw < k.sw
	k.weight()
	k.channels(steps)
	k.fetchPixel(width, pixels, steps)
	k.pointer("const bf16", "large", k.large.value)
	k.pointer("const "+ctype(k.w.dtype), "w", k.w.value)
	k.pointer("bf16", "small", k.small.value)
	left, shift := "0", k.padL
	if halo {
		left, shift = fmt.Sprintf("j0 - %d", k.padL), 0
	}
	k.line(`KERNEL_SYNC(NAME, %d, struct NAME_args) {
	enum { STEPS = %d, FRAGMENTS = %d, ROUNDS = %d, K = %d, PIXELS = %d, PITCH = %d };
	SHARED(float, ps, [K * PITCH]);
	SHARED(u32, ws, [STEPS * FRAGMENTS * 64]);
	const int warp = TID / 32, lane = TID %% 32, g = lane / 4, t = lane %% 4;
	%s
	const int top = i0 - %d, left = %s;
	u32 next[2][STEPS * 2];
	UNROLL
	for (int e = 0; e < 2; e++)
		fetch(next[e], a.large, image, top, left, warp * 16 + e * 8 + g, t);
	UNROLL
	for (int e = 0; e < %d; e++) {
		const int q = TID + e * %[1]d, h = q %% 2, m = channel(q / 64 / FRAGMENTS, h, q / 2 %% 4), k = q / 64 %% FRAGMENTS * 8 + q / 8 %% 8;
		if (q < STEPS * FRAGMENTS * 64)
			ws[q] = weight(a.w, m, k) | weight(a.w, m + 1, k) << 16;
	}
	SYNC();`, Block, steps, fragments, ceil(pixels, 16*8), k.taps(), pixels, pitch, k.place("BID"), k.padT, left, ceil(steps*fragments*64, Block))
	k.line(`	UNROLL
	for (int u = 0; u < ROUNDS; u++) {
		u32 x[2][STEPS * 2];
		UNROLL
		for (int e = 0; e < STEPS * 4; e++)
			x[e %% 2][e / 2] = next[e %% 2][e / 2];
		UNROLL
		for (int e = 0; e < 2 && u + 1 < ROUNDS; e++)
			fetch(next[e], a.large, image, top, left, ((u + 1) * 8 + warp) * 16 + e * 8 + g, t);
		float c[FRAGMENTS][4];
		UNROLL
		for (int e = 0; e < FRAGMENTS * 4; e++)
			c[e / 4][e %% 4] = 0;
		UNROLL
		for (int s = 0; s < STEPS; s++) {
			UNROLL
			for (int n = 0; n < FRAGMENTS; n++) {
				const uint2 b = ((const uint2 *)ws)[(s * FRAGMENTS + n) * 32 + lane];
				MMA(c[n], x[0][2 * s], x[1][2 * s], x[0][2 * s + 1], x[1][2 * s + 1], b.x, b.y);
			}
		}
		UNROLL
		for (int e = 0; e < FRAGMENTS * 4; e++) {
			const int k = e / 4 * 8 + 2 * t + e %% 2, p = (u * 8 + warp) * 16 + e / 2 %% 2 * 8 + g;
			if (k < K && p < PIXELS)
				ps[k * PITCH + p] = c[e / 4][e %% 4];
		}
	}
	SYNC();`)
	k.contractTaps(width, pitch, halo, shift)
	l, err := k.launch("contract", k.tiles(k.sh, k.sw))
	return []Launch{l}, err
}

// contractTile finds the tile, beside weights of so many bytes. width is how many columns
// of the large image it reads, which are all if it is narrow, and pitch what is between
// the products of two k: fragments are stored without conflicts if it is 4 more than a
// multiple of 16.
func (k *few) contractTile(weights int) (width, pitch int) {
	most := min(contractPixels, (contractShared-weights)/(4*k.taps())-12)
	for across := ceil(k.sw, 32); ; across++ {
		k.tw = ceil(k.sw, across)
		if width = k.tw + k.kw - 1; k.tw == k.sw && k.lw < width {
			width = k.lw
		}
		if rows := most/width - (k.kh - 1); rows > 0 {
			k.th = ceil(k.sh, ceil(k.sh, rows))
			break
		}
	}
	k.quot("across", ceil(k.sw, k.tw))
	k.quot("down", ceil(k.sh, k.th))
	return width, (k.th+k.kh-1)*width + (4-(k.th+k.kh-1)*width%16+16)%16
}

// channels adds the function that says which channels, the first of two, are in word h of
// fragment s of thread t; beyond the last where there are none.
func (k *few) channels(steps int) {
	text := "s * 16 + h * 8 + 2 * t"
	if k.many%8 == 0 {
		whole := k.many / 32 * 2
		text = fmt.Sprintf("s < %d ? s / 2 * 32 + 8 * t + s %% 2 * 4 + 2 * h : ", whole)
		rest := whole
		if k.many%32 >= 16 {
			text += fmt.Sprintf("s == %d ? %d + 4 * t + 2 * h : ", whole, whole*16)
			rest++
		}
		text += fmt.Sprintf("h == 0 ? %d + 2 * t : %d", rest*16, k.many)
	}
	k.helper(fmt.Sprintf("DEVICE int channel(int s, int h, int t) { return %s; }\n", text))
}

// fetchPixel adds the function that loads a thread's channels of pixel p of what a tile
// reads, which is so many pixels in rows of that width: 0 where there is none.
func (k *few) fetchPixel(width, pixels, steps int) {
	body := ""
	switch whole := k.many / 32; {
	case k.many%8 != 0:
		body = fmt.Sprintf(`	UNROLL
	for (int e = 0; e < %d; e++) {
		const int m = channel(e / 2, e %% 2, t);
		v[e] = (alive && m < %d ? (u32)at[m] : 0) | (alive && m + 1 < %[2]d ? (u32)at[m + 1] << 16 : 0);
	}
`, 2*steps, k.many)
	default:
		for i := range whole {
			body += wordsOf("uint4", "alive", i*4, fmt.Sprintf("%d + 8 * t", i*32), 4)
		}
		if at := whole * 32; k.many%32 >= 16 {
			body += wordsOf("uint2", "alive", at/8, fmt.Sprintf("%d + 4 * t", at), 2)
		}
		if at := k.many / 16 * 16; k.many%16 != 0 {
			body += wordsOf("u32", "alive", at/8, fmt.Sprintf("%d + 2 * t", at), 1) + fmt.Sprintf("\tv[%d] = 0;\n", at/8+1)
		}
	}
	k.helper(fmt.Sprintf(`DEVICE void fetch(u32 *v, const bf16 *large, idx image, int top, int left, int p, int t) {
	const int r = p / %d, row = top + r, column = left + p - r * %[1]d;
	const int alive = p < %[2]d && row >= 0 && row < %[3]d && column >= 0 && column < %[4]d;
	const bf16 *at = large + (alive ? ((image * %[3]d + row) * %[4]d + column) * %[5]d : 0);
%[6]s}
`, width, pixels, k.lh, k.lw, k.many, body))
}

// wordsOf is the text that loads n words from an element on, as one piece: 0 where not
// alive, which is no branch, so that loads need not wait for each other.
func wordsOf(ctype, alive string, to int, at string, n int) string {
	text := fmt.Sprintf("\t{\n\t\tconst int some = %s;\n\t\tconst bf16 *from = at + (some ? %s : 0);\n\t\tALIGNED(from, %d);\n\t\tconst %s o = *(const %[4]s *)from;\n", alive, at, 4*n, ctype)
	for i := range n {
		word := "o"
		if n > 1 {
			word = "o." + "xyzw"[i:i+1]
		}
		text += fmt.Sprintf("\t\tv[%d] = some ? %s : 0;\n", to+i, word)
	}
	return text + "\t}\n"
}

// contractTaps writes the lines that add up the products under each pixel, and end the
// kernel. Where there is no halo, some taps are beside what was read.
func (k *few) contractTaps(width, pitch int, halo bool, shift int) {
	value := "v"
	if !halo {
		value = fmt.Sprintf("s + e >= %d && s + e < %d ? v : 0", shift, shift+width)
	}
	k.line(`	UNROLL
	for (int u = 0; u < %d; u++) {
		const int q = TID + u * %d, p = q / %d, o = q - p * %[3]d, r = p / %[4]d, s = p - r * %[4]d;
		if (q >= %[5]d || i0 + r >= %[6]d || j0 + s >= %[7]d)
			continue;
		float sum = 0;
		UNROLL
		for (int f = 0; f < %[8]d; f++) {
			UNROLL
			for (int e = 0; e < %[9]d; e++) {
				const int at = (r + f) * %[11]d + s + e - %[12]d;
				const float v = ps[((f * %[9]d + e) * %[3]d + o) * %[10]d + (at < 0 ? 0 : at < PIXELS ? at : PIXELS - 1)];
				sum += %[13]s;
			}
		}
		a.small[((image * %[6]d + i0 + r) * %[7]d + j0 + s) * %[3]d + o] = toBF16(sum);
	}
}`, ceil(k.th*k.tw*k.few, Block), Block, k.few, k.tw, k.th*k.tw*k.few, k.sh, k.sw, k.kh, k.kw, pitch, width, shift, value)
}
